import type { HeadField, Position } from '../../../kernel/kit/frontmatter.js'
import { iso } from '../../../kernel/plugin.js'
import type { Heartbeat, HeartbeatContext, HeartbeatFrontmatter, TimeWindow } from '../../../schemas/agents/sidecars.js'
import { durationMs, durationText } from '../../../schemas/duration.js'
import { Findings, parseSidecar, type SidecarDocument } from './document.js'
import { checkBody, checkedFields, cutText, HEARTBEAT_FORBIDDEN, headFields } from './fields.js'
import { type HeartbeatConfig, MAX_SIDECAR_BYTES, subsetOf } from './settings.js'
import { digestOf, type SidecarSource, snapshotId } from './source.js'

const SCHEMA_VERSION = 1
const HEAD = {
  version: 'integer',
  enabled: 'boolean',
  summary: 'text',
  context: 'mapping',
  preferences: 'mapping',
} as const
const PREFERENCES = { min_interval: 'text', active_hours: 'mappings', quiet_windows: 'mappings' } as const
const WINDOW = { start: 'text', end: 'text', timezone: 'text' } as const
const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d$/

const EMPTY: HeartbeatFrontmatter = { version: SCHEMA_VERSION, enabled: false, context: {}, preferences: {} }

/** Validates a HEARTBEAT.md text. Never throws: problems are reported as diagnostics. */
export function heartbeatOf(source: SidecarSource, config: HeartbeatConfig): Heartbeat {
  const { agentName, sourcePath, text, problem } = source
  const findings = new Findings('heartbeat_', { owner_surface: 'agent.heartbeat', source_path: sourcePath })
  const present = text !== undefined || problem !== undefined
  const document = parseSidecar(text ?? '')
  const { frontmatter, preferences } = present
    ? judge(document, config, findings)
    : { frontmatter: EMPTY, preferences: inForce(EMPTY, config, findings) }
  if (problem) findings.add(problem.code, problem.message)

  const subset = subsetOf(config)
  const configDigest = digestOf(subset)
  const valid = present && findings.valid
  const enabled = config.enabled && frontmatter.enabled
  const active = valid && enabled
  const digest = present
    ? // An invalid text has no canonical form, so its bytes are hashed.
      digestOf([SCHEMA_VERSION, findings.valid ? [document.body, frontmatter] : (text ?? ''), configDigest])
    : undefined
  const shown = cutText(document.body, config.context_projection_bytes)
  const { summary } = frontmatter
  const about = {
    config_digest: configDigest,
    ...(sourcePath && { source_path: sourcePath }),
    ...(digest && { digest }),
    ...(summary !== undefined && { summary }),
  }
  return {
    active,
    agent_name: agentName,
    ...about,
    config_provenance: { digest: configDigest, subset },
    ...(source.changedAt !== undefined && { created_at: iso(source.changedAt) }),
    diagnostics: findings.all,
    enabled,
    frontmatter,
    ...(present && { guidance_markdown: document.body }),
    limits: {
      context_projection_bytes: config.context_projection_bytes,
      max_body_bytes: config.max_body_bytes,
      max_bytes: MAX_SIDECAR_BYTES,
    },
    preferences,
    present,
    prompt: {
      active,
      ...about,
      context: preferences.context,
      ...(active && { guidance_markdown: shown.text }),
      max_body_bytes: config.max_body_bytes,
      max_bytes: config.context_projection_bytes,
      preferences,
      truncated: shown.truncated,
    },
    schema_version: SCHEMA_VERSION,
    ...(digest && { snapshot_id: snapshotId('hbs', agentName, digest) }),
    valid,
    validation_status: !present ? 'missing' : !valid ? 'invalid' : enabled ? 'valid' : 'inactive',
  }
}

function judge(document: SidecarDocument, config: HeartbeatConfig, findings: Findings) {
  const head = headFields(document, HEAD, HEARTBEAT_FORBIDDEN, findings)
  const { version = SCHEMA_VERSION } = head as { version?: number }
  if (version !== SCHEMA_VERSION) {
    const position = document.fields.get('version')?.position
    findings.add('unsupported_version', `version ${version} is not supported; use ${SCHEMA_VERSION}`, {
      field: 'version',
      position,
    })
  }
  const frontmatter: HeartbeatFrontmatter = {
    version,
    enabled: (head.enabled as boolean | undefined) ?? true,
    ...(head.summary !== undefined && { summary: (head.summary as string).trim() }),
    context: contextOf(document.fields.get('context'), head.context, findings),
    preferences: preferencesOf(document.fields.get('preferences'), head.preferences, findings),
  }
  checkBody(document, config.max_body_bytes, 'reserved_body_field', HEARTBEAT_FORBIDDEN, findings)
  return { frontmatter, preferences: inForce(frontmatter, config, findings, document.fields.get('preferences')) }
}

/** Fields of a mapping in a frontmatter; none if it is absent or not a mapping. */
function inner<K extends string>(
  field: HeadField | undefined,
  value: unknown,
  types: Readonly<Record<K, 'text' | 'texts' | 'mappings'>>,
  path: readonly (string | number)[],
  prefix: string,
  findings: Findings,
): { [N in K]?: unknown } {
  if (field === undefined || value === undefined) return {}
  const position = (name: string): Position => field.positionOf([...path, name])
  return checkedFields(Object.entries(value as object), types, HEARTBEAT_FORBIDDEN, findings, { prefix, position })
}

function contextOf(field: HeadField | undefined, value: unknown, findings: Findings): HeartbeatContext {
  const { include } = inner(field, value, { include: 'texts' }, [], 'context.', findings)
  return include === undefined ? {} : { include: include as string[] }
}

function preferencesOf(
  field: HeadField | undefined,
  value: unknown,
  findings: Findings,
): HeartbeatFrontmatter['preferences'] {
  const members = inner(field, value, PREFERENCES, [], 'preferences.', findings)
  const interval = members.min_interval as string | undefined
  if (interval !== undefined && !durationMs(interval)) {
    findings.add('invalid_field_type', 'preferences.min_interval is a duration like 30m or 1h30m', {
      field: 'preferences.min_interval',
      position: field?.positionOf(['min_interval']),
    })
  }
  const windows = (name: 'active_hours' | 'quiet_windows') => {
    const list = members[name] as readonly object[] | undefined
    return list && { [name]: list.map((window, index) => windowOf(field, window, [name, index], findings)) }
  }
  return {
    ...(interval !== undefined && { min_interval: interval }),
    ...windows('active_hours'),
    ...windows('quiet_windows'),
  }
}

function windowOf(
  field: HeadField | undefined,
  value: object,
  path: readonly [string, number],
  findings: Findings,
): TimeWindow {
  const at = `preferences.${path[0]}.${path[1]}`
  const {
    start = '',
    end = '',
    timezone = '',
  } = inner(field, value, WINDOW, path, `${at}.`, findings) as Partial<TimeWindow>
  const wrong = (code: string, name: string, message: string) =>
    findings.add(code, message, { field: `${at}.${name}`, position: field?.positionOf([...path, name]) })
  for (const [name, time] of Object.entries({ start, end })) {
    if (!TIME.test(time))
      wrong('invalid_window', name, `${at}.${name} is a time of day from "00:00" to "23:59", in quotes`)
  }
  if (start === end && TIME.test(start)) wrong('invalid_window', 'end', `${at} is empty: its start equals its end`)
  if (!isZone(timezone)) {
    wrong(
      'invalid_timezone',
      'timezone',
      `${at}.timezone must be a time zone name like Europe/Paris; a fixed offset is not allowed`,
    )
  }
  return { start, end, timezone }
}

/** Whether this system knows the time zone. */
function isZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** The effective preferences: never more frequent than the configuration allows. */
function inForce(
  { preferences, context }: HeartbeatFrontmatter,
  config: HeartbeatConfig,
  findings: Findings,
  field?: HeadField,
): Heartbeat['preferences'] {
  const wished = durationMs(preferences.min_interval ?? '') || config.default_interval
  const position = (name: string) => field?.positionOf([name])
  if (wished < config.min_interval) {
    findings.add(
      'preference_clamped',
      `min_interval is raised to ${durationText(config.min_interval)}, agents.heartbeat.min_interval`,
      {
        severity: 'warning',
        field: 'preferences.min_interval',
        position: position('min_interval'),
      },
    )
  }
  const windows = { active_hours: preferences.active_hours, quiet_windows: preferences.quiet_windows }
  const entries = Object.entries(windows).filter(([, list]) => list !== undefined && list.length > 0)
  if (!config.allow_active_hours_preferences) {
    for (const [name] of entries) {
      findings.add(
        'preference_ignored',
        `${name} is ignored: agents.heartbeat.allow_active_hours_preferences is false`,
        {
          severity: 'warning',
          field: `preferences.${name}`,
          position: position(name),
        },
      )
    }
  }
  return {
    context,
    min_interval: durationText(Math.max(wished, config.min_interval)),
    ...(config.allow_active_hours_preferences && Object.fromEntries(entries)),
  }
}
