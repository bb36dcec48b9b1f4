/** Where the code of extensions runs: copies below `cache/extensions`, since `apiVersion = 2` below a folder of their version. */
const IN_COPY = /cache\/extensions\/(?:api-\d+\/)?[0-9a-f]+\/([^/]+)\/([^)\n]+)/

/**
 * The extension in whose copy the first place of a stack, or a path or URL, lies.
 * @returns its name, and the place below its folder, `main.js:3:5`
 */
export function placeInCopy(stack: string): { readonly name: string; readonly place: string } | undefined {
  const [, name, place] = IN_COPY.exec(stack) ?? []
  return name === undefined || place === undefined ? undefined : { name, place }
}
