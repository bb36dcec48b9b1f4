import { Callers, DropIns } from '../../../kernel/platform.js'
import { DiskSpace, Host, type KernelOf, maybe, Requests } from '../../../kernel/plugin.js'
import { Confinement } from '../../access/sandboxes/api.js'
import { Vault } from '../../access/vault/api.js'
import { Daemon } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { Files } from '../../platform/files/api.js'
import { Processes } from '../../platform/processes/api.js'
import { Sessions } from '../../work/sessions/api.js'

/** Dependencies of the plugin. */
export const needs = {
  host: Host,
  dropIns: DropIns,
  request: Requests,
  callers: Callers,
  file: Files,
  disk: DiskSpace,
  daemon: Daemon,
  events: Events,
  processes: Processes,
  vault: maybe(Vault),
  workspaces: maybe(Workspaces),
  sandboxes: maybe(Confinement),
  sessions: maybe(Sessions),
}
export type K = KernelOf<typeof needs>
type Needs = typeof needs

/** The kernel for the installer. */
export type InstallerKernel = KernelOf<Pick<Needs, 'host' | 'dropIns' | 'disk' | 'events' | 'processes' | 'vault'>>

/** The kernel for processes of extensions. */
export type SubprocessKernel = KernelOf<
  Pick<Needs, 'host' | 'request' | 'callers' | 'events' | 'processes' | 'sandboxes' | 'sessions'>
>
