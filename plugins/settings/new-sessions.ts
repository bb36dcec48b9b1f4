import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { Sessions } from '../sessions/api.js'
import { WorkspaceSettings, type WorkspaceSettingsApi } from './api.js'

const { tap } = surfaceOf<{ readonly needs: { readonly settings: WorkspaceSettingsApi } }>()

/** Refuses new sessions in a workspace whose configuration is not valid. A plugin of its own, so that settings work without sessions. */
export const newSessions = definePlugin({
  name: 'settings-sessions',
  version: '0.1.0',
  requires: { settings: WorkspaceSettings, sessions: Sessions },
}).surface({
  taps: [
    tap(
      Sessions,
      sessions => sessions.creating,
      ({ needs }) =>
        ({ session }) =>
          needs.settings.overlays.refusal(session.workspaceId),
    ),
  ],
})
