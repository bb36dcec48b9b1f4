import * as v from 'valibot'
import type { Setting } from '../contract/surface.js'

const setting = <T>(
  path: string,
  section: string,
  schema: v.GenericSchema<unknown, T>,
  fallback: T,
  apply: Setting['apply'] = 'restart-required',
): Setting<T> => ({ path, section, schema, default: fallback, apply })
const integer = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max))
const HOST = v.pipe(v.string(), v.minLength(1), v.maxLength(253))
const HOST_NAME = v.pipe(
  v.string(),
  v.maxLength(260),
  v.regex(
    /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i,
    'a host name, with a port or without',
  ),
  v.toLowerCase(),
)
const LEVEL = v.picklist(['debug', 'info', 'warn', 'error'])

/** The paths that the kernel itself owns. */
export const KernelSettings = {
  socket: setting('daemon.socket', 'general', v.string(), ''),
  /** `auto` is the same as true; it used to depend on what the system tells of local users. */
  enabled: setting<boolean | 'auto'>('http.enabled', 'general', v.union([v.boolean(), v.literal('auto')]), 'auto'),
  host: setting('http.host', 'general', HOST, 'localhost'),
  port: setting('http.port', 'general', integer(0, 65535), 2123),
  /** Names, with a port or for any, that the Host header may have beside those of loopback. */
  allowedHosts: setting<string[]>(
    'http.allowed_hosts',
    'general',
    v.pipe(v.array(HOST_NAME), v.maxLength(100)),
    [],
    'live',
  ),
  /** Nobody is served over TCP without a token, but by `public` routes. False: whoever reaches the port by a loopback name is the operator. */
  requireToken: setting('http.require_token', 'general', v.boolean(), true),
  /** The plugin that has to run for TCP to be served; until it does, requests wait. Needed beyond loopback. */
  authenticator: setting('http.authenticator', 'general', v.string(), ''),
  logLevel: setting('log.level', 'observability', LEVEL, 'info', 'live'),
  disabled: setting<string[]>('plugins.disabled', 'general', v.array(v.string()), []),
  replace: setting<string[]>('plugins.replace', 'general', v.array(v.string()), []),
}
