import { definePlugin, maybe, surfaceOf } from '../../../kernel/plugin.js'
import { Configuration } from '../../platform/configuration/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Checks } from '../daemon/api.js'
import { SettingKeys } from './api.js'
import { applyTable } from './apply-log.js'
import { commands } from './command-list.js'
import { DotEnvErrors } from './dot-env.js'
import { SettingsErrors } from './errors.js'
import { SettingsWritten } from './events.js'
import { needs } from './needs.js'
import { routes } from './routes.js'
import { sectionSettings } from './section.js'
import { sections } from './sections/sections.js'
import type { SettingsService } from './service.js'

const { contribute, tap } = surfaceOf<SettingsService>()

/** Settings over HTTP and on the command line: sections, named entries, keys, and a record of every change. */
export default definePlugin({
  name: 'settings',
  version: '0.1.0',
  requires: needs,
  provides: SettingKeys,
  service: () => import('./service.js').then(m => m.SettingsService),
}).surface({
  errors: [SettingsErrors, DotEnvErrors],
  events: [SettingsWritten],
  settings: sections.flatMap(sectionSettings),
  tables: [{ id: '001-apply', sql: applyTable }],
  secrets: [service => service.hidden],
  hooks: { running: service => service.running() },
  taps: [
    tap(
      Configuration,
      configuration => configuration.changed,
      service => () => service.writer.notice(),
    ),
    // Rejects new sessions in a workspace with an invalid configuration.
    tap(
      maybe(Sessions),
      sessions => sessions.creating,
      service =>
        ({ session }) =>
          service.overlays.refusal(session.workspaceId),
    ),
  ],
  registries: [
    contribute(Checks, service => [
      { id: 'home.env', category: 'home', run: async () => service.check() },
      { id: 'config.workspaces', category: 'config', run: () => service.overlays.check() },
    ]),
  ],
  commands,
  routes,
})
