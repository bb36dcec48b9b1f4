import { fileURLToPath } from 'node:url'

/** Arguments with which Node runs a TypeScript source of the tree in a process of its own. */
export const typescript = ['--import', fileURLToPath(new URL('typescript.mjs', import.meta.url))] as const
