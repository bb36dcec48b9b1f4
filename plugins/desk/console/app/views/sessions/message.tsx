import { memo } from 'preact/compat'
import { valueText } from '../../core/format.js'
import { text } from '../../text.js'
import { Diff, diffsOf } from '../../ui/diff.js'
import { Markdown } from '../../ui/markdown.js'
import { Badge, Code } from '../../ui/parts.js'
import { Terminal, terminalsOf } from '../../ui/terminal.js'
import { type Entry, promptText } from './use-transcript.js'

type Part = Entry['message']['parts'][number]

const words = text.sessions

/** A message with its parts. Each change creates a new entry object, so an identical entry needs no rendering. */
export const Message = memo(function Message({
  entry,
  agent,
  rewind,
}: {
  readonly entry: Entry
  readonly agent: string
  /** Rewinds the conversation to before this prompt; absent where it cannot be rewound. */
  readonly rewind?: ((entry: Entry) => void) | undefined
}) {
  const { role, parts } = entry.message
  const who = role === 'user' ? words.you : role === 'assistant' ? agent : words.system
  return (
    <article class={`message ${role}`} aria-label={who}>
      <div class="message-head">
        <p class="who">{who}</p>
        {rewind && role === 'user' && (
          <button
            type="button"
            class="quiet"
            aria-label={text.rewind.label(promptText(entry).slice(0, 60))}
            onClick={() => rewind(entry)}
          >
            {text.rewind.open}
          </button>
        )}
      </div>
      {parts.map((part, n) => (
        <PartOf key={part.toolCallId ?? n} part={part} />
      ))}
    </article>
  )
})

function PartOf({ part }: { readonly part: Part }) {
  switch (part.type) {
    case 'text':
      return <Markdown source={part.text ?? ''} />
    case 'reasoning':
      return (
        <details class="thought">
          <summary>{words.thought}</summary>
          <Markdown source={part.text ?? ''} />
        </details>
      )
    case 'dynamic-tool':
      return <Tool part={part} />
    case 'data-plan':
      return <Plan entries={(part.data as { entries?: unknown } | undefined)?.entries} />
    case 'data-permission':
      return <Permission part={part} />
    case 'data-omitted':
      return <p class="muted">{words.omitted}</p>
    case 'data-error':
      return <p class="failure">{part.errorText}</p>
    default:
      return <Note part={part} />
  }
}

const STATES: Readonly<Record<string, string>> = {
  'input-available': 'running',
  'output-available': 'completed',
  'output-error': 'failed',
}

/** The text of a tool's result. */
function outputText(output: unknown): string {
  const { content, raw } = Object(output) as { content?: unknown; raw?: unknown }
  const texts = (Array.isArray(content) ? content : []).flatMap(item => {
    const { content: inner, type } = Object(item) as { content?: { text?: unknown }; type?: unknown }
    return type === 'content' && typeof inner?.text === 'string' ? [inner.text] : []
  })
  if (texts.length > 0) return texts.join('\n')
  return raw === undefined ? '' : valueText(raw)
}

function Tool({ part }: { readonly part: Part }) {
  const output = outputText(part.output)
  const diffs = diffsOf(part.output)
  const terminals = terminalsOf(part.output)
  return (
    <details class="tool">
      <summary>
        <span class="tool-name">{part.title || part.toolName}</span>
        <Badge of={STATES[part.state ?? ''] ?? part.state ?? ''} />
      </summary>
      {part.input !== undefined && (
        <>
          <p class="label">{words.input}</p>
          <Code label={words.input}>{valueText(part.input)}</Code>
        </>
      )}
      {diffs.map((diff, n) => (
        <Diff key={n} {...diff} />
      ))}
      {terminals.map((terminal, n) => (
        <Terminal key={n} {...terminal} />
      ))}
      {output !== '' && (
        <>
          <p class="label">{words.output}</p>
          <Code label={words.output}>{output}</Code>
        </>
      )}
      {part.errorText && <p class="failure">{part.errorText}</p>}
    </details>
  )
}

interface Step {
  readonly content?: string
  readonly status?: string
}

function Plan({ entries }: { readonly entries: unknown }) {
  const steps = Array.isArray(entries) ? (entries as readonly Step[]) : []
  return (
    <section class="plan" aria-label={words.plan}>
      <p class="label">{words.plan}</p>
      <ol>
        {steps.map((step, n) => (
          <li key={n} class={step.status ?? ''}>
            {step.content} <Badge of={step.status ?? 'pending'} />
          </li>
        ))}
      </ol>
    </section>
  )
}

function Permission({ part }: { readonly part: Part }) {
  const { title = '', decision } = Object(part.data) as { title?: string; decision?: string }
  return (
    <p class="asked">
      <span class="label">{words.question}</span> {title} <Badge of={decision ?? part.state ?? ''} />
    </p>
  )
}

/** A part without a component of its own: its type and its text. */
function Note({ part }: { readonly part: Part }) {
  const { message, text: words, summary, stop_detail: detail } = Object(part.data) as Record<string, unknown>
  const said = [message, words, summary, detail].find(one => typeof one === 'string')
  return (
    <p class="note muted">
      {part.type.replace(/^data-/, '').replaceAll('_', ' ')}
      {said !== undefined && `: ${said}`}
    </p>
  )
}
