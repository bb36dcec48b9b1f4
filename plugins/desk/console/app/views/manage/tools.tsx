import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { valueText } from '../../core/format.js'
import { text } from '../../text.js'
import { Form } from '../../ui/form.js'
import type { ListView } from '../../ui/list.js'
import { Badge, Code, Fields } from '../../ui/parts.js'
import { parsedJson } from './json.js'

type Tool = ReplyOf<'GET /api/tools'>['tools'][number]

const words = text.tools
const { fields } = text.manage

const reasons = ({ availability, decision }: Tool) =>
  [...new Set([...(availability.reason_codes ?? []), ...(decision.reason_codes ?? [])])].join(', ')

export const tools: ListView<Tool> = {
  name: 'tools',
  title: words.title,
  command: 'svc tool list',
  load: async signal => (await api('GET /api/tools', { query: { source: 'all' } }, signal)).tools,
  changes: /^(?:tool|mcp|extension|plugin)\./,
  id: ({ descriptor }) => descriptor.tool_id,
  columns: [
    { header: fields.name, cell: ({ descriptor }) => <code>{descriptor.tool_id}</code>, wide: true },
    { header: fields.source, cell: ({ descriptor }) => descriptor.source.kind },
    { header: words.risk, cell: ({ descriptor }) => descriptor.risk.replaceAll('_', ' ') },
    { header: words.callable, cell: tool => <Badge of={tool.decision.callable ? words.yes : words.no} /> },
  ],
  empty: words.none,
  filter: true,
  search: ({ descriptor }) => `${descriptor.tool_id} ${descriptor.description}`,
  detail: {
    title: ({ descriptor }) => descriptor.display_title ?? descriptor.tool_id,
    command: ({ descriptor }) => `svc tool show ${descriptor.tool_id}`,
    show: tool => (
      <>
        <p>{tool.descriptor.description}</p>
        <Fields
          of={[
            [words.risk, tool.descriptor.risk.replaceAll('_', ' ')],
            [words.callable, tool.decision.callable ? words.yes : words.no],
            [words.approval, tool.decision.approval_required && words.yes],
            [fields.reason, reasons(tool) || tool.availability.detail],
            [fields.source, `${tool.descriptor.source.kind} ${tool.descriptor.source.owner}`],
            [words.backend, tool.descriptor.backend.kind.replaceAll('_', ' ')],
          ]}
        />
        <Call key={tool.descriptor.tool_id} tool={tool} />
        <h3>{words.schema}</h3>
        <Code label={words.schema}>{valueText(tool.descriptor.input_schema)}</Code>
      </>
    ),
  },
}

/** Calls a tool with a JSON input, like `svc tool call`. */
function Call({ tool: { descriptor } }: { readonly tool: Tool }) {
  const [result, setResult] = useState<string>()
  return (
    <>
      <Form
        label={words.call}
        fields={[{ name: 'input', label: words.input, kind: 'area', value: '{}' }]}
        submit={async ({ input = '' }) => {
          setResult(undefined)
          const reply = await api('POST /api/tools/{id}/invoke', {
            path: { id: descriptor.tool_id },
            body: { input: parsedJson(input) },
          })
          // The reply to a call that needs an approval is 202 with a message.
          setResult('result' in reply ? resultText(reply.result) : reply.error.message)
          announce(words.called)
        }}
      />
      {result !== undefined && <Code label={words.result}>{result}</Code>}
    </>
  )
}

const resultText = (result: { preview?: string | undefined; content?: unknown; structured_content?: unknown }) =>
  result.preview ?? valueText(result.content ?? result)
