import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'

/** `svc resource put <kind> <id> (--file <path> | --spec <json>)`: a PUT whose body comes from a file or an option. */
export async function run({ args, options, client, out, readFile, fault }: CommandContext): Promise<void> {
  const { kind = '', id = '' } = args
  const { file, spec: inline } = options
  if ((file === undefined) === (inline === undefined)) {
    fault(
      'usage',
      'give the spec with either --file or --spec',
      command('resource put', kind, id, '--file', 'spec.json'),
    )
  }
  const text = inline === undefined ? await readFile(String(file)) : String(inline)
  let spec: unknown
  try {
    spec = JSON.parse(text)
  } catch (error) {
    fault('usage', `the spec is not valid JSON: ${error instanceof Error ? error.message : error}`)
  }
  const scopeId = options['scope-id']
  const body = {
    scope: {
      kind: options['scope-kind'] ?? (scopeId === undefined ? 'global' : 'workspace'),
      ...(scopeId === undefined ? {} : { id: scopeId }),
    },
    spec,
    ...(options['expected-version'] === undefined ? {} : { expected_version: options['expected-version'] }),
  }
  if (options.force !== true) {
    const { health } = (await client.request('GET', '/api/status')) as {
      health?: { reconcile?: { kinds?: readonly { kind: string; registered: boolean }[] } }
    }
    const kinds = health?.reconcile?.kinds?.filter(({ registered }) => registered).map(row => row.kind)
    // A daemon without this list checks the kind itself.
    if (kinds && !kinds.includes(kind)) {
      const text = `no plugin has the kind ${JSON.stringify(kind)}: the record would have no effect; known kinds: ${kinds.join(', ')}`
      fault('kind_unknown', text, command('resource put', kind, id, '--file', 'spec.json', '--force'))
    }
  }
  const path = `/api/resources/${encodeURIComponent(kind)}/${encodeURIComponent(id)}`
  const reply = (await client.request('PUT', path, body)) as { record: { version: number } }
  if (out.json) out.value(reply)
  else out.line(`stored ${kind} ${id} at version ${reply.record.version}`)
}
