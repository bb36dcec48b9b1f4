import path from 'node:path'
import {
  AutomationMembers,
  GeneralMembers,
  HooksExtensionsMembers,
  MemoryMembers,
  NetworkMembers,
  ObservabilityMembers,
  SkillsMembers,
} from '../../../../schemas/settings/sections.js'
import { type Section, unread } from '../section.js'

type More = NonNullable<Section['more']>

const LINKS = [
  { label: 'Jobs', path: '/api/automation/jobs' },
  { label: 'Runs', path: '/api/automation/runs' },
]

export const generalFacts: More = {
  entries: GeneralMembers,
  read: async facts => {
    const { daemon, health } = await facts.status()
    const { home } = facts
    return {
      actions: { restart: { name: 'restart', available: facts.canRestart, behavior: 'action_trigger' } },
      config_paths: {
        daemon_info: home.discovery,
        global_config: home.config,
        global_mcp_sidecar: path.join(home.root, 'mcp.json'),
        home_dir: home.root,
        log_file: path.join(home.logs, 'svc.log'),
      },
      runtime: {
        available: true,
        active_agents: health.active_agents,
        active_sessions: daemon.active_sessions,
        total_sessions: daemon.total_sessions,
        uptime_seconds: health.uptime_seconds,
        http_host: daemon.http_host,
        http_port: daemon.http_port,
        pid: daemon.pid,
        socket: daemon.socket,
        started_at: daemon.started_at,
        status: daemon.status,
        ...(daemon.version !== undefined && { version: daemon.version }),
      },
    }
  },
}

export const automationFacts: More = {
  entries: AutomationMembers,
  read: async facts => {
    const automation = await facts.statusOf('automation')
    const isThere = automation !== undefined && automation.status !== 'unavailable'
    return {
      links: LINKS,
      runtime: {
        available: isThere,
        running: isThere && automation.enabled,
        scheduler_running: automation?.scheduler_running ?? false,
        job_enabled: automation?.jobs.enabled ?? 0,
        job_total: automation?.jobs.total ?? 0,
        trigger_enabled: automation?.triggers.enabled ?? 0,
        trigger_total: automation?.triggers.total ?? 0,
        next_fire: automation?.next_fire ?? null,
        last_synced_at: null,
      },
    }
  },
}

export const networkFacts: More = {
  entries: NetworkMembers,
  read: async facts => {
    const network = facts.network()
    return {
      links: [{ label: 'Network', path: '/api/network/status' }],
      runtime: {
        available: network !== undefined,
        enabled: network?.enabled ?? false,
        channels: network?.channels ?? 0,
        local_peers: network?.local_peers ?? 0,
        messages_delivered: network?.messages_delivered ?? 0,
        messages_received: network?.messages_received ?? 0,
        messages_rejected: network?.messages_rejected ?? 0,
        ...(network && { status: network.status }),
      },
    }
  },
}

export const hooksExtensionsFacts: More = {
  entries: HooksExtensionsMembers,
  read: async facts => {
    const extensions = await facts.extensions()
    const { daemon } = await facts.status()
    const isServed = daemon.http_off === undefined && daemon.http_port > 0
    const hasExtensions = extensions !== undefined
    return {
      hooks: await facts.hookEntries(),
      installed: (extensions ?? []).map(
        ({ name, enabled, health, health_message, last_error, missing_env, requires_env, state, version }) => ({
          name,
          enabled,
          state,
          version,
          ...(health !== undefined && { health }),
          ...(health_message !== undefined && { health_message }),
          ...(last_error !== undefined && { last_error }),
          ...(missing_env !== undefined && { missing_env }),
          ...(requires_env !== undefined && { requires_env }),
        }),
      ),
      transport_parity: {
        known: true,
        extensions_http: hasExtensions && isServed,
        extensions_uds: hasExtensions,
        settings_http: isServed,
        settings_uds: true,
      },
    }
  },
}

export const observabilityFacts: More = {
  entries: ObservabilityMembers,
  read: async facts => {
    const { health, daemon, log_tail: logTail } = await facts.status()
    return {
      log_tail: {
        available: logTail.available,
        stream_url: '/api/settings/observability/log-tail',
        transport: 'sse',
      },
      runtime: {
        available: true,
        active_agents: health.active_agents,
        active_sessions: daemon.active_sessions,
        global_db_size_bytes: health.global_db_size_bytes,
        session_db_size_bytes: health.session_db_size_bytes,
        uptime_seconds: health.uptime_seconds,
        status: health.status,
      },
    }
  },
}

export const skillsFacts: More = {
  entries: SkillsMembers,
  read: async facts => {
    const skills = await facts.statusOf('skills')
    return {
      runtime_available: skills?.runtime_available ?? false,
      discovered_count: skills?.discovered_count ?? 0,
      disabled_count: skills?.disabled_count ?? 0,
      diagnostics: skills?.diagnostics ?? [],
      links: [{ label: 'Skills', path: '/api/skills' }],
    }
  },
}

export const memoryFacts: More = {
  entries: MemoryMembers,
  read: async () => ({
    actions: { consolidate: { name: 'consolidate', available: false, behavior: 'action_trigger' } },
    health: { available: false, dream_enabled: false, file_count: 0, last_consolidated_at: null },
    runtime: unread,
  }),
}
