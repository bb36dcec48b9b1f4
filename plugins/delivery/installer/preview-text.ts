import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import { clip } from '../../../kernel/kit/text.js'
import type { CommandOutput } from '../../../kernel/plugin.js'
import type { Brought, InstallPreview } from '../../../schemas/extensions/install.js'

const WIDTH = 80
const LABEL = 15
/** Printed characters of one text; `--json` has all. */
const MOST = 2000

/** The effect of each consent, for people. */
export const MEANINGS: Readonly<Record<InstallPreview['consents_asked'][number], string>> = {
  'bridge.read': 'list and show bridges',
  'bridge.write': 'connect a chat platform, whose messages become prompts',
  'session.write': 'create sessions, send prompts, answer permission questions',
}

/** Prints the basis of a decision: identity, everything it brings, and trust. */
export function printPreview(out: CommandOutput, preview: InstallPreview): void {
  const row = (what: string, text: string) => printRow(out, `  ${what}`, text)
  const versions = preview.previous_version ? `${preview.previous_version} → ${preview.version}` : preview.version
  out.line(out.color('bold', `${preview.name} ${versions}`))
  if (preview.description) row('is', preview.description)
  row('from', `${preview.source_url} (${preview.registry_tier})`)
  if (preview.commit) row('commit', preview.commit)
  if (preview.archive_digest_sha256) row('archive', `sha256 ${preview.archive_digest_sha256}`)
  row('files', `${preview.files}, ${preview.bytes} bytes, sha256 ${preview.tree_digest}`)
  if (preview.type === 'plugin') row('runs', 'inside the daemon, with all its rights')
  if (preview.permissions.length > 0) row('asks for', preview.permissions.join(', '))
  if (preview.permissions_added.length > 0 && preview.previous_version)
    row('new', out.color('yellow', preview.permissions_added.join(', ')))
  if (preview.consents_asked.length > 0)
    row('wants', out.color('yellow', preview.consents_asked.map(one => `${one}: ${MEANINGS[one]}`).join('; ')))
  if (preview.consents_given.length > 0) row('allowed', preview.consents_given.join(', '))
  if (preview.permissions_dropped.length > 0)
    row('not granted', out.color('yellow', preview.permissions_dropped.join(', ')))
  if (preview.requires_env.length > 0) row('needs', preview.requires_env.join(', '))
  row('trust', preview.refusal ? out.color('red', preview.refusal.error) : preview.decision)
  printBrought(out, preview)
}

function printBrought(
  out: CommandOutput,
  { brings, new_brings: fresh, previous_version, sandboxed, type }: InstallPreview,
) {
  if (brings.length === 0) {
    printRow(out, '  brings', type === 'plugin' ? 'only its code' : 'nothing that runs, sends requests or has secrets')
    return
  }
  const isNew = new Set(previous_version === undefined ? [] : fresh.map(one => JSON.stringify(one)))
  out.line('')
  out.line(out.color('bold', `It brings ${summary(brings)}`))
  for (const one of brings) {
    const name = out.color(one.runs === undefined ? 'bold' : 'yellow', one.name)
    printRow(out, `  ${one.kind}`, isNew.has(JSON.stringify(one)) ? `${name} (new)` : name)
    if (one.about) printRow(out, '', one.about)
    if (one.runs) printRow(out, '    runs', one.runs.replaceAll('{{config_dir}}', '<its folder>'))
    if (one.reaches) printRow(out, '    calls', one.reaches.join(', '))
    if (one.given) printRow(out, '    is given', one.given.map(secretText).join(', '))
    if (one.sandbox) printRow(out, '    sandbox', one.sandbox)
  }
  const programs = brings.some(({ runs }) => runs !== undefined)
  if (!programs) return
  out.line(
    sandboxed
      ? 'Programs run in a sandbox; servers and hooks may change their workspace.'
      : out.color('yellow', 'Programs run without a sandbox, with your rights.'),
  )
}

/** `2 programs, 1 address, 1 secret` */
function summary(brings: readonly Brought[]): string {
  const counts = [
    [brings.filter(({ runs }) => runs !== undefined).length, 'program', 'programs'],
    [new Set(brings.flatMap(({ reaches = [] }) => reaches)).size, 'address', 'addresses'],
    [new Set(brings.flatMap(({ given: references = [] }) => references)).size, 'secret', 'secrets'],
    [brings.filter(one => !one.runs && !one.reaches && !one.given).length, 'other thing', 'other things'],
  ] as const
  return counts.flatMap(([count, one, more]) => (count > 0 ? [`${count} ${count === 1 ? one : more}`] : [])).join(', ')
}

const secretText = (reference: string) =>
  parseSecretRef(reference)?.scheme === 'env' ? `${reference} (a variable of the daemon)` : reference

/** Prints a label and a text with continuation lines. */
function printRow(out: CommandOutput, label: string, text: string): void {
  const whole = text.length > MOST ? `${clip(text, MOST)}… (${text.length - MOST} more characters: --json)` : text
  const room = WIDTH - LABEL
  const lines: string[] = []
  let rest = whole
  while (widthOf(rest) > room) {
    const at = rest.lastIndexOf(' ', room)
    // Only a word longer than a line is split.
    const end = at > 0 ? at : room
    lines.push(rest.slice(0, end))
    rest = rest.slice(end).trimStart()
  }
  for (const [n, line] of [...lines, rest].entries()) out.line(`${(n === 0 ? label : '').padEnd(LABEL)}${line}`)
}

/** Colour codes take no columns. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what colours begin with
const widthOf = (text: string) => text.replace(/\x1b\[[0-9;]*m/g, '').length
