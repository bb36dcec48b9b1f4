/**
 * Folder of running extension code: copies below `cache/extensions`, since `apiVersion = 2` below a folder of that
 * version.
 */
const IN_COPY = /cache\/extensions\/(?:api-\d+\/)?[0-9a-f]+\/([^/]+)\/([^)\n]+)/

/**
 * The extension whose copy contains the first place of a stack, path or URL.
 * @returns its name, and the place relative to its folder, `main.js:3:5`
 */
export function placeInCopy(stack: string): { readonly name: string; readonly place: string } | undefined {
  const [, name, place] = IN_COPY.exec(stack) ?? []
  return name === undefined || place === undefined ? undefined : { name, place }
}
