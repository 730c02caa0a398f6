/**
 * The key of this page's requests. It comes with the address that the server leads to when the page is opened, and is
 * kept in the store of this origin, which pages at other ports of the host cannot read, as they can its cookies.
 */

const KEPT = "ewan-studio-key";

// The page's modules are tested where there is no page.
const asked = globalThis.location ? new URLSearchParams(location.search).get("key") : null;

if (asked) {
  localStorage.setItem(KEPT, asked);
  history.replaceState(null, "", `${location.pathname}${location.hash}`);
}

export const keyOfPage = (): string => localStorage.getItem(KEPT) ?? "";

/** Headers of a request, with the key. */
export const withKey = (headers: Record<string, string> = {}): Record<string, string> => ({
  ...headers,
  "x-ewan-key": keyOfPage(),
});
