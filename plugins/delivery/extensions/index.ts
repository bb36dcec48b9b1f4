import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { SecretOwners } from '../../access/vault/api.js'
import { Checks, KnownNames } from '../../desk/daemon/api.js'
import { WorkspaceDeleted, Workspaces } from '../../desk/workspaces/api.js'
import { Events, PluginLoaded, PluginUnloaded } from '../../platform/events/api.js'
import { installMigrations } from '../installer/api.js'
import {
  ExtensionDevLinked,
  ExtensionDevUnlinked,
  ExtensionDisabled,
  ExtensionEnabled,
  ExtensionErrors,
  ExtensionReloaded,
  ExtensionReloadFailed,
  Extensions,
  ProvisionOwners,
  ResourceFamilies,
} from './api.js'
import { authoringCommands } from './authoring/surface.js'
import { StateErrors } from './errors.js'
import { EVERYWHERE } from './identity.js'
import { BootCodes } from './load/boot-code.js'
import { needs } from './needs.js'
import { extensionRoutes } from './routes.js'
import { extensionSecrets } from './secret-path.js'
import { secretRoutes } from './secret-routes.js'
import type { ExtensionsService } from './service.js'
import { migrations, startedMigration, startedVersionMigration, stateMigration } from './tables.js'

const { contribute, tap } = surfaceOf<ExtensionsService>()

export default definePlugin({
  name: 'extensions',
  version: '0.1.0',
  requires: needs,
  provides: Extensions,
  service: () => import('./service.js').then(module => module.ExtensionsService),
}).surface({
  declares: [ResourceFamilies, ProvisionOwners, BootCodes],
  tables: [...migrations, ...installMigrations, startedMigration, stateMigration, startedVersionMigration],
  owned: [
    {
      ...{ by: Workspaces, table: 'extensions_dev', column: 'workspace' },
      forget: (service, { name, workspace }) => service.unlinkFrom(`${name}`, `${workspace}`),
    },
    { by: Workspaces, table: 'extensions_dev_network', column: 'workspace' },
    { by: Workspaces, table: 'extensions_binding', column: 'workspace', none: EVERYWHERE },
  ],
  errors: [ExtensionErrors, StateErrors],
  commands: authoringCommands,
  events: [
    ExtensionEnabled,
    ExtensionDisabled,
    ExtensionReloaded,
    ExtensionReloadFailed,
    ExtensionDevLinked,
    ExtensionDevUnlinked,
  ],
  services: [{ name: 'follow', run: (service, signal) => service.follow(signal) }],
  taps: [PluginLoaded, PluginUnloaded].map(type =>
    tap(
      Events,
      events => events.of(type),
      service =>
        ({ payload }) =>
          service.refit(payload.name),
    ),
  ),
  hooks: { unrouted: (service, path) => service.unrouted(path) },
  quiesce: [{ phase: 'dropins', run: service => service.quiesce() }],
  registries: [
    contribute(SecretOwners, service => [
      extensionSecrets,
      { what: 'workspace', deleted: { event: WorkspaceDeleted.name }, paths: id => service.secrets.ofWorkspace(id) },
    ]),
    contribute(Checks, service => service.checks()),
    contribute(KnownNames, service => [() => service.names()]),
  ],
  routes: [...extensionRoutes, ...secretRoutes],
})
