import type * as v from 'valibot'
import type { Actor, Setting } from '../../../kernel/plugin.js'
import type { Agent } from '../../../schemas/agents.js'
import type { StatusReply } from '../../../schemas/daemon.js'
import type { Extension } from '../../../schemas/extensions.js'
import type { NetworkStatusReply } from '../../../schemas/network.js'
import type { HookEntry } from '../../../schemas/settings/hooks.js'
import type { SettingsSection } from '../../../schemas/settings/sections.js'
import type { DaemonApi } from '../daemon/api.js'
import { type Members, settingsOf } from './keys.js'

/** Inputs for the additional members of a reply. */
export interface Facts {
  readonly actor: Actor
  readonly status: () => Promise<StatusReply>
  /** One member of the status. */
  readonly statusOf: DaemonApi['reports']['member']
  /** Undefined without the plugin `network`. */
  readonly network: () => NetworkStatusReply['network'] | undefined
  /** Undefined without the plugin `extensions`. */
  readonly extensions: () => Promise<readonly Extension[] | undefined>
  readonly hookEntries: () => Promise<readonly HookEntry[]>
  readonly home: { readonly root: string; readonly discovery: string; readonly config: string; readonly logs: string }
  /** Whether the daemon can be asked to restart. */
  readonly canRestart: boolean
  /** An effective value. */
  readonly value: (path: string) => unknown
}

/** Declaration of a section; its routes are generated from it. */
export interface Section {
  readonly name: SettingsSection
  /** Prefix of the keys that this plugin owns. */
  readonly prefix: string
  readonly members: Members
  /** When changes of those keys take effect. */
  readonly apply: Setting['apply']
  /** Places the members in the reply itself instead of in `config`; a PATCH then replies with them. */
  readonly flat?: true
  readonly scopes?: readonly ScopeName[]
  /** For the scope `agent`: the one member that a definition sets, and how it is read. */
  readonly ofAgent?: { readonly member: string; readonly read: (agent: Agent) => unknown }
  /** Additional members of the reply. */
  readonly more?: {
    readonly entries: v.ObjectEntries
    readonly read: (facts: Facts) => Promise<Record<string, unknown>>
  }
}

/** Reply members for a section that is stored, validated and shown, but not read by any subsystem. */
export const unread = {
  available: false as const,
  status: 'unavailable' as const,
  reason: 'no subsystem of this daemon reads these settings; they are only stored and validated',
}

/** The settings that a section adds. */
export const sectionSettings = ({ prefix, name, members, apply }: Section): Setting[] =>
  settingsOf(prefix, name, members, apply)

export type ScopeName = 'global' | 'workspace' | 'agent'

/** The scope that a request names. */
export interface ScopeQuery {
  readonly scope?: ScopeName | undefined
  readonly workspace_id?: string | undefined
  readonly agent_name?: string | undefined
}
