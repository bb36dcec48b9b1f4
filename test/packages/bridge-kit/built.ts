import { fileURLToPath } from 'node:url'

/** The command that starts an adapter as the build made it, one file with its libraries. */
export const builtBridge = (name: string): readonly string[] => [
  process.execPath,
  fileURLToPath(new URL(`../../../dist/extensions/bridge-${name}/main.cjs`, import.meta.url)),
]
