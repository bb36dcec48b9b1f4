import type * as v from 'valibot'
import type { Actor, Setting } from '../../../kernel/plugin.js'
import type { Agent } from '../../../schemas/agents.js'
import type { SettingsSection } from '../../../schemas/settings/sections.js'
import { type Members, settingsOf } from './keys.js'

/** What members of a reply are made of. */
export interface Facts {
  readonly actor: Actor
  /** The reply of a GET of the daemon, undefined when it is not answered with 200: its plugin may not run. */
  readonly ask: (path: string) => Promise<unknown>
  readonly home: { readonly root: string; readonly discovery: string; readonly config: string; readonly logs: string }
  /** The daemon can be asked to restart. */
  readonly canRestart: boolean
  /** A value in force. */
  readonly value: (path: string) => unknown
}

/** A section: what it consists of, as data. Its routes are made from it. */
export interface Section {
  readonly name: SettingsSection
  /** Keys that this plugin keeps begin with it. */
  readonly prefix: string
  readonly members: Members
  /** When a change of those keys takes effect. */
  readonly apply: Setting['apply']
  /** The members stand in the reply itself instead of in `config`, and a PATCH answers with them. */
  readonly flat?: true
  readonly scopes?: readonly ScopeName[]
  /** With the scope `agent`: the one member that a definition decides, and what it says. */
  readonly ofAgent?: { readonly member: string; readonly read: (agent: Agent) => unknown }
  /** Members of the reply beside the configuration. */
  readonly more?: {
    readonly entries: v.ObjectEntries
    readonly read: (facts: Facts) => Promise<Record<string, unknown>>
  }
}

/** Members of a reply of a section that is stored, validated and shown, but read by no subsystem. */
export const unread = {
  available: false as const,
  status: 'unavailable' as const,
  reason: 'no subsystem of this daemon reads these settings; they are stored and validated',
}

/** The keys that a section brings along. */
export const sectionSettings = ({ prefix, name, members, apply }: Section): Setting[] =>
  settingsOf(prefix, name, members, apply)

export type ScopeName = 'global' | 'workspace' | 'agent'

/** The scope that a request names. */
export interface ScopeQuery {
  readonly scope?: ScopeName | undefined
  readonly workspace_id?: string | undefined
  readonly agent_name?: string | undefined
}
