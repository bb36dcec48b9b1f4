import { DropIns } from '../../../kernel/platform.js'
import { DiskSpace, Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Vault } from '../../access/vault/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Files } from '../../platform/files/api.js'
import { Processes } from '../../platform/processes/api.js'
import { SubprocessHost } from '../subprocess-host/api.js'

/** Dependencies of the plugin. */
export const needs = {
  host: Host,
  dropIns: DropIns,
  file: Files,
  disk: DiskSpace,
  daemon: Daemon,
  events: Events,
  processes: Processes,
  subprocesses: SubprocessHost,
  vault: maybe(Vault),
  workspaces: maybe(Workspaces),
}
export type K = KernelOf<typeof needs>
type Needs = typeof needs

/** The kernel for the installer. */
export type InstallerKernel = KernelOf<Pick<Needs, 'host' | 'dropIns' | 'disk' | 'events' | 'processes' | 'vault'>>
