import { iso } from '../../../kernel/plugin.js'
import type { Soul, SoulFrontmatter } from '../../../schemas/agents/sidecars.js'
import { Findings, parseSidecar } from './document.js'
import { checkBody, cutText, headFields, SOUL_FORBIDDEN } from './fields.js'
import { MAX_SIDECAR_BYTES, type SoulConfig } from './settings.js'
import { digestOf, type SidecarSource, snapshotId } from './source.js'

const LISTS = {
  tone: 'texts',
  principles: 'texts',
  constraints: 'texts',
  collaboration: 'texts',
  memory_policy: 'texts',
  tags: 'texts',
} as const
const HEAD = { version: 'text', role: 'text', ...LISTS } as const
/** Frontmatter fields included in the text for the agent, with titles; tags are for people only. */
const TOLD = [
  ['tone', 'Tone'],
  ['principles', 'Principles'],
  ['constraints', 'Constraints'],
  ['collaboration', 'Collaboration'],
  ['memory_policy', 'Memory'],
] as const

/** Validates a SOUL.md text. Never throws: problems are reported as diagnostics. */
export function soulOf(source: SidecarSource, config: SoulConfig): Soul {
  const { agentName, sourcePath, text, problem } = source
  const findings = new Findings('', { owner_surface: 'agent.soul', source_path: sourcePath })
  const present = text !== undefined || problem !== undefined
  const document = parseSidecar(text ?? '')
  // Accepts `version: 1`, which YAML parses as a number.
  const version = document.fields.get('version')
  const fields = new Map(document.fields)
  if (version && typeof version.value === 'number') fields.set('version', { ...version, value: String(version.value) })
  const frontmatter = headFields({ ...document, fields }, HEAD, SOUL_FORBIDDEN, findings) as SoulFrontmatter
  checkBody(document, config.max_body_bytes, 'forbidden_section', SOUL_FORBIDDEN, findings)
  if (problem) findings.add(problem.code, problem.message)

  const configDigest = digestOf(config)
  const valid = present && findings.valid
  const active = valid && config.enabled
  const digest = present
    ? // An invalid text has no canonical form, so its bytes are hashed.
      digestOf(findings.valid ? [document.body, frontmatter] : [text ?? ''])
    : undefined
  return {
    active,
    agent_name: agentName,
    ...(present && { body: document.body }),
    config_provenance: { ...config, digest: configDigest, source: 'agents.soul' },
    ...(source.changedAt !== undefined && { created_at: iso(source.changedAt) }),
    diagnostics: findings.all,
    ...(digest && { digest, snapshot_id: snapshotId('sos', agentName, digest) }),
    enabled: config.enabled,
    frontmatter,
    limits: {
      context_projection_bytes: config.context_projection_bytes,
      max_body_bytes: config.max_body_bytes,
      max_bytes: MAX_SIDECAR_BYTES,
    },
    present,
    ...(sourcePath && { source_path: sourcePath }),
    truncated: present && personaOf(document.body, frontmatter, config).truncated,
    valid,
    validation_status: !present ? 'missing' : !valid ? 'invalid' : active ? 'valid' : 'inactive',
  }
}

/** The persona text for the agent, cut to the configured size. */
export function personaOf(body: string, frontmatter: SoulFrontmatter, config: SoulConfig) {
  const lists = TOLD.flatMap(([name, title]) => {
    const items = frontmatter[name]
    return items === undefined || items.length === 0 ? [] : [`${title}:\n${items.map(item => `- ${item}`).join('\n')}`]
  })
  const role = frontmatter.role === undefined ? [] : [`Role: ${frontmatter.role}`]
  return cutText([...role, ...lists, body].filter(part => part !== '').join('\n\n'), config.context_projection_bytes)
}
