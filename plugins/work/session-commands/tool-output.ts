import { visible } from '../../../kernel/kit/text.js'

type Content = Readonly<Record<string, unknown>>

/** Members with the printed text in agent-specific outputs, in order of preference. */
const PRINTED = ['formatted_output', 'aggregated_output', 'output', 'stdout', 'result', 'content', 'text']
/** Maximum number of lines kept of one output. */
const MAX_LINES = 10_000

/** The output of a tool in lines, with invisible characters marked; empty without output. */
export function outputLines({ content, raw_output: raw }: Content): readonly string[] {
  const blocks = (Array.isArray(content) ? content : []) as ((Content & { readonly content?: Content }) | null)[]
  const texts = blocks
    .map(block => (block?.type === 'terminal' ? block.output : block?.content?.text))
    .filter(text => typeof text === 'string')
  const text = texts.length > 0 ? withoutFence(texts.join('\n')) : printedIn(raw)
  const lines = text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours that a program printed
    .replace(/\x1b\[[\d;]*[mK]/g, '')
    .replace(/\r\n/g, '\n')
    .trimEnd()
    .split('\n')
  if (lines.length === 1 && lines[0]?.trim() === '') return []
  // A line that was overwritten several times is shown in its last form.
  return lines.slice(0, MAX_LINES).map(line => visible(line.slice(line.lastIndexOf('\r') + 1).replaceAll('\t', '    ')))
}

function printedIn(raw: unknown): string {
  if (typeof raw === 'string') return raw
  if (typeof raw !== 'object' || raw === null) return ''
  const { stdout, stderr } = raw as Content
  if (typeof stdout === 'string' && typeof stderr === 'string') return [stdout, stderr].filter(Boolean).join('\n')
  const found = PRINTED.map(name => (raw as Content)[name]).find(value => typeof value === 'string' && value !== '')
  return typeof found === 'string' ? found : ''
}

/** Agents wrap command output in a code fence, which is removed. */
function withoutFence(text: string): string {
  const [, inside] = /^\s*`{3,}[^\n]*\n([\s\S]*?)\n?`{3,}\s*$/.exec(text) ?? []
  return inside ?? text
}
