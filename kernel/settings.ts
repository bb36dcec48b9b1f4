import * as v from 'valibot'
import { settingsSection } from './kit/settings.js'

const daemon = settingsSection({ path: 'daemon', section: 'general', apply: 'restart-required' })
const log = settingsSection({ path: 'log', section: 'observability', apply: 'live' })
const plugins = settingsSection({ path: 'plugins', section: 'general', apply: 'restart-required' })
const LEVEL = v.picklist(['debug', 'info', 'warn', 'error'])

/** The paths that the kernel itself owns. */
export const KernelSettings = {
  socket: daemon('socket', v.string(), ''),
  logLevel: log('level', LEVEL, 'info'),
  disabled: plugins('disabled', v.array(v.string()), []),
  replace: plugins('replace', v.array(v.string()), []),
}
