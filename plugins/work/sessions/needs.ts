import { Faults, Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Vault } from '../../access/vault/api.js'
import { Agents } from '../../agents/agents/api.js'
import { Providers } from '../../agents/providers/api.js'
import { Archives } from '../../desk/archives/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { SettingKeys } from '../../desk/settings/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Files } from '../../platform/files/api.js'
import { Journals } from '../../platform/journals/api.js'
import { Ownership } from '../../platform/ownership/api.js'
import { Processes } from '../../platform/processes/api.js'
import { Acp } from '../acp/api.js'
import { Worktrees } from '../worktrees/api.js'

/** Required services of the plugin. */
export const needs = {
  host: Host,
  file: Files,
  report: Faults,
  daemon: Daemon,
  events: Events,
  agents: Agents,
  providers: Providers,
  workspaces: Workspaces,
  processes: Processes,
  journals: Journals,
  archives: maybe(Archives),
  settings: maybe(SettingKeys),
  vault: maybe(Vault),
  ownership: Ownership,
  acp: Acp,
  worktrees: Worktrees,
}
export type K = KernelOf<typeof needs>
