import { definePlugin, type Setting } from '../../../kernel/plugin.js'
import { CuratedCatalogs, ExtensionInstaller } from './api.js'
import { InstallErrors } from './errors.js'
import { installEvents } from './events.js'
import { needs } from './needs.js'
import { installCommands, installRoutes } from './surface.js'
import { AllowUnverified, Unsandboxed } from './trust.js'

/** Installs, updates and removes extensions, and packs them. */
export default definePlugin({
  name: 'installer',
  version: '0.1.0',
  requires: needs,
  provides: ExtensionInstaller,
  service: () => import('./service.js').then(module => module.InstallerService),
}).surface({
  declares: [CuratedCatalogs],
  errors: [InstallErrors],
  commands: installCommands,
  events: installEvents,
  settings: [AllowUnverified, Unsandboxed] as Setting[],
  routes: installRoutes,
})
