/** What a template may name; `Data` has members of its own. */
const FIELDS = new Set(['Kind', 'Scope', 'WorkspaceID', 'Source', 'Data'])
const ACTION = /\{\{(-?)([\s\S]*?)(-?)\}\}/g
const FIELD = /^\.([A-Za-z]+)((?:\.[A-Za-z_][A-Za-z0-9_]*)*)$/
const INDEX = /^index\s+\.Data((?:\s+"(?:[^"\\]|\\.)*")+)$/

/**
 * What is wrong with the prompt of a trigger as a template, or undefined. Known are `{{ .Kind }}` and the other fields,
 * `{{ .Data.a.b }}` and `{{ index .Data "a" "b" }}`; a text without braces is itself.
 */
export function templateProblem(prompt: string): string | undefined {
  for (const [whole, , inner = ''] of prompt.matchAll(ACTION)) {
    const text = inner.trim()
    const [, field = '', below = ''] = FIELD.exec(text) ?? []
    if (INDEX.test(text) || (FIELDS.has(field) && (below === '' || field === 'Data'))) continue
    return `the template does not know ${whole.slice(0, 80)}; it has .Kind, .Scope, .WorkspaceID, .Source and .Data`
  }
  const rest = prompt.replace(ACTION, '')
  return /\{\{|\}\}/.test(rest) ? 'the template has {{ or }} without its other half' : undefined
}
