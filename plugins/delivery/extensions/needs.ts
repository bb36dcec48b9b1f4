import type { Callers, DropIns } from '../../../kernel/platform.js'
import type { DiskSpace, Host, PluginKernel, Requests } from '../../../kernel/plugin.js'
import type { Confinement } from '../../access/sandboxes/api.js'
import type { Vault } from '../../access/vault/api.js'
import type { Daemon } from '../../desk/daemon/api.js'
import type { Workspaces } from '../../desk/workspaces/api.js'
import type { Events } from '../../platform/events/api.js'
import type { Files } from '../../platform/files/api.js'
import type { Processes } from '../../platform/processes/api.js'
import type { Sessions } from '../../work/sessions/api.js'

/** What the plugin requires. */
export type ExtensionNeeds = {
  host: typeof Host
  dropIns: typeof DropIns
  request: typeof Requests
  callers: typeof Callers
  file: typeof Files
  disk: typeof DiskSpace
  daemon: typeof Daemon
  events: typeof Events
  processes: typeof Processes
  vault: { readonly maybe: typeof Vault }
  workspaces: { readonly maybe: typeof Workspaces }
  sandboxes: { readonly maybe: typeof Confinement }
  sessions: { readonly maybe: typeof Sessions }
}

/** The kernel of a plugin that installs. */
export type InstallerKernel = PluginKernel<
  Pick<ExtensionNeeds, 'host' | 'dropIns' | 'disk' | 'events' | 'processes' | 'vault'>
>

/** The kernel of a plugin that hosts processes of extensions. */
export type SubprocessKernel = PluginKernel<
  Pick<ExtensionNeeds, 'host' | 'request' | 'callers' | 'events' | 'processes' | 'sandboxes' | 'sessions'>
>
