import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** One source file, its text split into what is code and what is comment; string contents are blanked in `code`. */
export interface Source {
  readonly file: string
  readonly text: string
  readonly code: string
  readonly comments: string
  /** Specifiers of static and dynamic imports and of re-exports. */
  readonly imports: readonly string[]
  /** Those of them that are loaded when the file is: neither types alone nor imports made by a call. */
  readonly valueImports: readonly string[]
}

const IMPORT = /^(?:import|export)\s+(?!type\b)(?:([^'"]*?)\s*from\s+)?['"]([^'"]+)['"]/gm
/** Braces with nothing in them but types. */
const TYPES_ONLY = /^\{\s*(?:type\s+[^,{}]+,?\s*)+\}$/

/** Splits TypeScript text; good enough for rules over our own formatted sources. */
export function readSource(file: string, text: string): Source {
  let code = ''
  let comments = ''
  const token =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|\/(?![*/\s])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*(?=[\s.,;)\]])|[\s\S]/g
  for (const [piece] of text.matchAll(token)) {
    if (piece.length > 1 && (piece.startsWith('//') || piece.startsWith('/*'))) comments += `${piece}\n`
    else if (piece.length > 1) code += "''"
    else code += piece
  }
  const imports = [...text.matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|^\s*import\s+)['"]([^'"]+)['"]/gm)].map(
    match => match[1] as string,
  )
  const valueImports = [...text.matchAll(IMPORT)].flatMap(([, names = '', from]) =>
    TYPES_ONLY.test(names) ? [] : [from as string],
  )
  return { file, text, code, comments, imports, valueImports }
}

/** All TypeScript sources below a folder of the repository, paths relative to its root. */
export function sourcesBelow(root: string, folder: string): Source[] {
  return (
    readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && /\.ts$/.test(entry.name))
      .map(entry => path.relative(root, path.join(entry.parentPath, entry.name)))
      // The bench installs what it compares with below its own folder.
      .filter(file => !file.split(path.sep).includes('node_modules'))
      .sort()
      .map(file => readSource(file, readFileSync(path.join(root, file), 'utf8')))
  )
}
