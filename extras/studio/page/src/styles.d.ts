// esbuild makes one style sheet of what is imported so.
declare module "*.css";
