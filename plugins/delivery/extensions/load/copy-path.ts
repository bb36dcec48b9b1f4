/**
 * Folder of running extension code: copies below `cache/extensions`, since `apiVersion = 2` below a folder of that
 * version.
 */
const IN_COPY = /cache\/extensions\/(?:api-\d+\/)?[0-9a-f]+\/([^/]+)\/([^)\n]+)/

/**
 * The extension whose copy contains the first place of a stack, path or URL.
 * @returns its name, and the place relative to its folder, `main.js:3:5`
 */
export function locationInCopy(stack: string): { readonly name: string; readonly location: string } | undefined {
  const [, name, location] = IN_COPY.exec(stack) ?? []
  return name === undefined || location === undefined ? undefined : { name, location }
}
