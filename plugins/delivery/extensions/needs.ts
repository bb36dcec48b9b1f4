import { DropIns } from '../../../kernel/platform.js'
import { Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Vault } from '../../access/vault/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Files } from '../../platform/files/api.js'
import { Processes } from '../../platform/processes/api.js'
import { ExtensionInstaller } from '../installer/api.js'
import { SubprocessHost } from '../subprocess-host/api.js'

/** Dependencies of the plugin. */
export const needs = {
  host: Host,
  dropIns: DropIns,
  file: Files,
  daemon: Daemon,
  events: Events,
  processes: Processes,
  installer: ExtensionInstaller,
  subprocesses: SubprocessHost,
  vault: maybe(Vault),
  workspaces: maybe(Workspaces),
}
export type K = KernelOf<typeof needs>
