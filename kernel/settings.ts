import * as v from 'valibot'
import type { Setting } from './contract/surface.js'

const setting = <T>(
  path: string,
  section: string,
  schema: v.GenericSchema<unknown, T>,
  fallback: T,
  apply: Setting['apply'] = 'restart-required',
): Setting<T> => ({ path, section, schema, default: fallback, apply })
const LEVEL = v.picklist(['debug', 'info', 'warn', 'error'])

/** The paths that the kernel itself owns. */
export const KernelSettings = {
  socket: setting('daemon.socket', 'general', v.string(), ''),
  logLevel: setting('log.level', 'observability', LEVEL, 'info', 'live'),
  disabled: setting<string[]>('plugins.disabled', 'general', v.array(v.string()), []),
  replace: setting<string[]>('plugins.replace', 'general', v.array(v.string()), []),
}
