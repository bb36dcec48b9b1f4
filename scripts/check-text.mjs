// `node scripts/check-text.mjs`: finds `.slice` calls that cut a text at a limit and may split a character of two UTF-16 units;
// `clip` and `cut` of the kit do not. Uses types to recognise texts. Part of `npm run check`.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { SyntaxKind } from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/sync'

const FOLDERS = /^(?:kernel|plugins|cli|client|testing|packages|schemas)\//
const METHODS = new Set(['slice', 'substring', 'substr'])
/** Names of limits. Any other second argument is assumed to be a position found in the text. */
const BOUND = /^(?:[A-Z][A-Z0-9_]*|(?:max|limit|longest|most|room|width)\w*|\w*(?:Max|Limit))$/
/** Shorter limits are formats, such as the ten characters of a date. */
const SHORTEST = 20
/** Values that are always ASCII. */
const ASCII = /\.digest\(|\.toString\('(?:hex|base64url)'\)|toISOString\(\)|\bsha256\b|_hash\b/

/** Types of texts, not of lists of texts. */
const TEXT = /^(?:string|"[^"]*"|`[^`]*`)(?: \| (?:string|undefined|null|"[^"]*"))*$/
/** Sources of the safe functions. */
const EXCEPT = /^(?:kernel\/kit|packages\/(?:agent|bridge-kit)\/src)\/text\.ts$/

/** Whether an argument is a limit. */
function isBound(node) {
  if (node.kind === SyntaxKind.NumericLiteral) return Number(node.text) >= SHORTEST
  if (node.kind === SyntaxKind.Identifier) return BOUND.test(node.text)
  if (node.kind === SyntaxKind.PropertyAccessExpression) return BOUND.test(node.name.text)
  if (node.kind === SyntaxKind.BinaryExpression) return isBound(node.left) || isBound(node.right)
  return false
}

/** Calls in the sources below `root` that may split a character. */
export function unsafeCuts(root) {
  const api = new API({ cwd: root })
  try {
    const { program, checker } = api.updateSnapshot({ openProject: path.join(root, 'tsconfig.json') }).getProjects()[0]
    const found = []
    for (const name of program.getSourceFileNames()) {
      const file = path.relative(root, name)
      if (!FOLDERS.test(file) || name.endsWith('.d.ts') || EXCEPT.test(file) || file.includes('node_modules')) continue
      const text = readFileSync(name, 'utf8')
      if (!/\.(?:slice|substring|substr)\(0, /.test(text)) continue
      const calls = []
      const visit = node => {
        const { expression: callee, arguments: given } = node
        if (
          node.kind === SyntaxKind.CallExpression &&
          callee.kind === SyntaxKind.PropertyAccessExpression &&
          METHODS.has(callee.name.text) &&
          given.length === 2 &&
          given[0].text === '0' &&
          isBound(given[1])
        )
          calls.push({ callee, bound: given[1] })
        node.forEachChild(visit)
      }
      program.getSourceFile(name).forEachChild(visit)
      for (const { callee, bound } of calls) {
        const type = checker.getTypeAtLocation(callee.expression)
        if (!type || !TEXT.test(checker.typeToString(type))) continue
        const receiver = text.slice(callee.expression.pos, callee.expression.end).trim()
        if (ASCII.test(receiver)) continue
        const start = text.indexOf(receiver, callee.expression.pos)
        const line = text.slice(0, start).split('\n').length
        found.push({ file, line, receiver, bound: text.slice(bound.pos, bound.end).trim() })
      }
    }
    return found
  } finally {
    api.close()
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = unsafeCuts(path.join(path.dirname(fileURLToPath(import.meta.url)), '..'))
  for (const { file, line, receiver, bound } of found)
    console.log(
      `${file}:${line}: ${receiver.replace(/\s+/g, ' ').slice(-60)}.slice(0, ${bound}) may split a character: use clip or cut`,
    )
  process.exit(found.length === 0 ? 0 : 1)
}
