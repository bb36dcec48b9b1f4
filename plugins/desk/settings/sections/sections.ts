import * as v from 'valibot'
import { PermissionMode } from '../../../../schemas/agents.js'
import { FireLimit } from '../../../../schemas/automation.js'
import { Integer } from '../../../../schemas/kernel/common.js'
import { UnreadRuntime } from '../../../../schemas/settings/sections.js'
import { WindowPreferences } from '../../../../schemas/window-manager.js'
import { choice, duration, durationKey, flag, integer, key, list, type Members, own, shortDuration } from '../keys.js'
import { type Section, unread } from '../section.js'
import {
  automationFacts,
  generalFacts,
  hooksExtensionsFacts,
  memoryFacts,
  networkFacts,
  observabilityFacts,
  skillsFacts,
} from './facts.js'
import { memory } from './memory.js'
import { roles } from './roles.js'

const text = v.pipe(v.string(), v.maxLength(4096))
/** Address of a catalog: a folder, or a URL that the marketplace can reach. */
const catalogAddress = v.pipe(
  text,
  v.check(
    where => !/^[a-z][a-z0-9+.-]*:/i.test(where) || /^file:/i.test(where) || isWebAddress(where),
    'a folder, or an address of http or https without a password',
  ),
)
const liveWords = (meaning: string) => own(text, '', meaning, { apply: 'live' })
const rate = v.strictObject({ queue: Integer, requests: Integer, window: text })
const unreadFacts: Section['more'] = { entries: { runtime: UnreadRuntime }, read: async () => ({ runtime: unread }) }

function isWebAddress(where: string): boolean {
  const url = URL.canParse(where) ? new URL(where) : undefined
  return url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
}

/** One key for each value of a preferences object. */
function keysOf(schema: v.GenericSchema, prefix: string): Members {
  const { entries } = schema as unknown as { entries: Record<string, v.GenericSchema> }
  return Object.fromEntries(
    Object.entries(entries).map(([name, part]) => {
      const path = `${prefix}.${name}`
      return [name, 'entries' in part ? keysOf(part, path) : key(path, part)]
    }),
  )
}

/** All sections. To add a section, add an entry. */
export const sections: readonly Section[] = [
  {
    name: 'general',
    prefix: '',
    apply: 'restart-required',
    members: {
      daemon: {
        memory_report_interval: duration('5m', 'Interval of reports of the memory of the daemon; 0: none'),
        reload_timeouts: {
          bridges: shortDuration('30s', 300, 'Timeout for bridges to apply a change'),
          mcp: shortDuration('10s', 60, 'Timeout for MCP servers to apply a change'),
          providers: shortDuration('5s', 60, 'Timeout for providers to apply a change'),
        },
        socket: key('daemon.socket', text),
      },
      defaults: {
        agent: key('defaults.agent', text),
        provider: key('defaults.provider', text, { absent: '', isShown: true }),
        sandbox: key('defaults.sandbox', text, { absent: '', isShown: true }),
      },
      http: { host: key('http.host', text), port: key('http.port', Integer) },
      limits: { max_concurrent_agents: key('limits.max_concurrent_agents', Integer) },
      permissions: { mode: key('permissions.mode', PermissionMode) },
      redact: { enabled: key('redact.enabled', v.boolean()) },
      session_timeout: durationKey('session.limits.timeout'),
    },
    more: generalFacts,
  },
  {
    name: 'automation',
    prefix: 'automation',
    apply: 'restart-required',
    members: {
      default_fire_limit: key('automation.default_fire_limit', FireLimit),
      enabled: key('automation.enabled', v.boolean()),
      max_concurrent_jobs: key('automation.max_concurrent_jobs', Integer),
      timezone: key('automation.timezone', text),
    },
    more: automationFacts,
  },
  {
    name: 'hooks-extensions',
    prefix: 'marketplace',
    apply: 'restart-required',
    members: {
      marketplace: {
        allow_unverified: key('extensions.trust.allow_unverified', v.boolean()),
        base_url: {
          ...liveWords('Address or folder of the catalog of the marketplace; empty: none'),
          wire: catalogAddress,
          stored: text,
          at: 'catalog.base_url',
          absent: '',
        },
        registry: {
          ...liveWords('Name of the catalog as shown for installed items; empty: `catalog`'),
          at: 'registry',
        },
      },
      resources: {
        allowed_kinds: key('extensions.resources.allowed_kinds', v.array(text)),
        max_scope: key('extensions.resources.max_scope', v.picklist(['global', 'workspace']), { absent: '' }),
        operator_write_rate_limit: key('extensions.resources.operator_write_rate_limit', rate),
        snapshot_rate_limit: key('extensions.resources.snapshot_rate_limit', rate),
      },
    },
    more: hooksExtensionsFacts,
  },
  {
    name: 'network',
    prefix: 'network',
    apply: 'live',
    members: {
      enabled: key('network.enabled', v.boolean()),
      live: {
        defaults: {
          coalesce_window: key('network.live.defaults.coalesce_window', text),
          max_input_tokens: key('network.live.defaults.max_input_tokens', Integer),
          max_output_tokens: key('network.live.defaults.max_output_tokens', Integer),
          max_total_wall_time: key('network.live.defaults.max_total_wall_time', text),
          max_wake_depth: key('network.live.defaults.max_wake_depth', Integer),
          max_wake_wall_time: key('network.live.defaults.max_wake_wall_time', text),
          max_wakes: key('network.live.defaults.max_wakes', Integer),
        },
        limits: {
          max_coalesce_window: key('network.live.limits.max_coalesce_window', text),
          max_input_tokens: key('network.live.limits.max_input_tokens', Integer),
          max_output_tokens: key('network.live.limits.max_output_tokens', Integer),
          max_total_wall_time: key('network.live.limits.max_total_wall_time', text),
          max_wake_depth: key('network.live.limits.max_wake_depth', Integer),
          max_wake_wall_time: key('network.live.limits.max_wake_wall_time', text),
          max_wakes: key('network.live.limits.max_wakes', Integer),
          min_coalesce_window: key('network.live.limits.min_coalesce_window', text),
        },
      },
      max_replay_age: key('network.max_replay_age', Integer),
    },
    more: networkFacts,
  },
  {
    name: 'observability',
    prefix: 'observability',
    apply: 'restart-required',
    members: {
      enabled: key('observability.enabled', v.boolean()),
      max_global_bytes: key('observability.max_global_bytes', Integer),
      retention_days: key('observability.retention_days', Integer),
      transcripts: {
        enabled: flag(true, 'Whether transcripts are kept'),
        max_bytes_per_session: key('observability.transcripts.max_bytes_per_session', Integer),
        segment_bytes: integer(1_048_576, 'Bytes of one segment of a transcript'),
      },
    },
    more: observabilityFacts,
  },
  {
    name: 'window-manager',
    prefix: 'window_manager',
    apply: 'live',
    members: keysOf(WindowPreferences, 'window_manager'),
  },
  {
    name: 'skills',
    prefix: 'skills',
    apply: 'live',
    scopes: ['global', 'agent'],
    ofAgent: { member: 'disabled_skills', read: agent => agent.skills?.disabled ?? [] },
    members: {
      enabled: key('skills.enabled', v.boolean()),
      disabled_skills: key('skills.disabled_skills', v.array(text)),
      poll_interval: key('skills.poll_interval', text),
      allowed_marketplace_hooks: key('skills.allowed_marketplace_hooks', v.array(text)),
      allowed_marketplace_mcp: key('skills.allowed_marketplace_mcp', v.array(text)),
      marketplace: {
        base_url: key('marketplace.catalog.base_url', catalogAddress, { absent: '' }),
        registry: key('marketplace.registry', text),
      },
    },
    more: skillsFacts,
  },
  {
    name: 'attention',
    prefix: 'attention',
    apply: 'live',
    members: {
      muted_workspaces: list([], 'Workspaces whose notifications are not shown'),
      sound: flag(true, 'Whether a notification makes a sound'),
      system: flag(true, 'Whether notifications are shown by the system'),
      toasts: flag(true, 'Whether notifications are shown in the application'),
    },
    more: unreadFacts,
  },
  { name: 'memory', prefix: 'memory', apply: 'restart-required', members: memory, more: memoryFacts },
  { name: 'roles', prefix: 'roles', apply: 'live', members: roles, more: unreadFacts },
  {
    name: 'cmd-palette',
    prefix: 'cmd_palette',
    apply: 'live',
    flat: true,
    scopes: ['global', 'workspace'],
    members: {
      fallback_agent_enabled: own(v.boolean(), true, 'Whether text that is not a command goes to an agent', {
        overlay: true,
      }),
      personalization: own(v.boolean(), true, 'Whether commands that are used often come first', { overlay: true }),
    },
    more: unreadFacts,
  },
  {
    name: 'shell',
    prefix: 'shell',
    apply: 'live',
    members: {
      sessions: {
        scope: choice(['workspace', 'all-workspaces'], 'workspace', 'Sessions that are listed'),
        sort: choice(['last_activity', 'attention'], 'last_activity', 'Order of the listed sessions'),
      },
    },
    more: unreadFacts,
  },
]
