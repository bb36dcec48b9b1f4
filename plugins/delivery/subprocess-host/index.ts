import { definePlugin, type Setting } from '../../../kernel/plugin.js'
import { SubprocessHost } from './api.js'
import { ExtensionCrashLoop } from './events.js'
import { needs } from './needs.js'
import { SubprocessSettings } from './settings.js'
import { SnapshotErrors, sourceTable } from './snapshots.js'

/** Runs extensions as processes in any language. */
export default definePlugin({
  name: 'subprocess-host',
  version: '0.1.0',
  requires: needs,
  provides: SubprocessHost,
  service: () => import('./service.js').then(module => module.SubprocessHostService),
}).surface({
  // Homes of earlier versions have this table in the kernel's stream.
  inherits: [sourceTable],
  errors: [SnapshotErrors],
  events: [ExtensionCrashLoop],
  settings: Object.values(SubprocessSettings) as Setting[],
})
