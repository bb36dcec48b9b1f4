import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'
import type { Setting } from '../../../kernel/plugin.js'
import { durationMs } from '../../../schemas/duration.js'

const setting = settingsSection({ path: 'skills', section: 'skills', apply: 'live' })

const names = (text: string) =>
  v.pipe(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(128))), v.maxLength(1000), v.description(text))

const duration = v.pipe(
  v.string(),
  v.check(text => (durationMs(text) ?? 0) >= 100, 'a duration of at least 100ms, like 3s'),
  v.description('Maximum age of the cached contents of a large skill folder before a request reads it again'),
)

export const SkillSettings = {
  enabled: setting('enabled', v.pipe(v.boolean(), v.description('Whether agents are told about skills')), true),
  disabled: {
    ...setting('disabled_skills', names('Skills that agents are not told about'), []),
    // A workspace has a list of its own.
    overlay: true,
  } as Setting<string[]>,
  pollInterval: setting('poll_interval', duration, '3s'),
  contextBytes: setting(
    'context_bytes',
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(0),
      v.maxValue(1024 * 1024),
      v.description('Maximum bytes of the skill list in the first prompt of a session'),
    ),
    4096,
  ),
  allowedHooks: setting('allowed_marketplace_hooks', names('Skills of the marketplace whose hooks may run'), []),
  allowedMcp: setting(
    'allowed_marketplace_mcp',
    names('Skills of the marketplace whose MCP servers may be started'),
    [],
  ),
}
