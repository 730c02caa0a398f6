// A button that puts a text on the clipboard and says so.

import { copy } from "./keep";
import { useStudio } from "./studio";

interface Props {
  text: () => string;
  said: string; // to the person
  children: string;
  testid: string;
}

export function Copy({ text, said, children, testid }: Props) {
  const { fail, say } = useStudio();
  return (
    <button
      type="button"
      onClick={() => {
        copy(text()).then(
          () => say(said),
          (error: Error) => fail(error.message),
        );
      }}
      data-testid={testid}
    >
      {children}
    </button>
  );
}

/** Of the page that is shown. It has no token: who opens it has the address that ewan studio printed in the same browser. */
export function CopyLink() {
  return (
    <Copy
      text={() => `${location.origin}/${location.hash}`}
      said="the link is copied; who opens it needs this studio's token in the browser"
      testid="copy-link"
    >
      Copy link
    </Copy>
  );
}
