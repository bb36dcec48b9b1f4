import { clip } from './text.js'
import { type Instance, InstanceProblem } from './types.js'

/** Typed reads of `provider_config` and secrets. Each throws an {@link InstanceProblem} that names the invalid value. */
export interface Settings {
  text(key: string, fallback: string, form: RegExp): string
  flag(key: string, fallback: boolean): boolean
  integer(key: string, fallback: number, least: number, most: number): number
  texts(key: string, form: RegExp, most: number): readonly string[]
  /** A server URL without a trailing slash. */
  url(key: string, fallback: string, schemes: readonly string[]): string
  /** An API URL, which must use TLS unless it is on this machine. */
  api(key: string, fallback: string): string
  /** @param hint Where to get the value */
  secret(slot: string, form: RegExp, hint: string): string
}

/** The settings of an instance. */
export function settingsOf(instance: Instance): Settings {
  const { config, secret } = instance
  const texts = (key: string, form: RegExp, most: number): readonly string[] => {
    const value = config[key] ?? []
    if (!Array.isArray(value) || value.length > most) throw wrong(key, value)
    for (const one of value) if (typeof one !== 'string' || !form.test(one)) throw wrong(key, one)
    return [...new Set(value as string[])]
  }
  const url = (key: string, fallback: string, schemes: readonly string[]): string => {
    const value = config[key] ?? fallback
    if (typeof value !== 'string' || !URL.canParse(value)) throw wrong(key, value)
    const { protocol, username, password, search, hash } = new URL(value)
    if (!schemes.includes(protocol.slice(0, -1)) || `${username}${password}${search}${hash}` !== '')
      throw wrong(key, value)
    return value.replace(/\/+$/, '')
  }
  return {
    texts,
    url,
    api: (key, fallback) => {
      const value = url(key, fallback, ['https', 'http'])
      if (/^(?:https:|http:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?:[:/]|$))/i.test(value)) return value
      throw wrong(key, value)
    },
    text: (key, fallback, form) => {
      const value = config[key] ?? fallback
      if (typeof value === 'string' && form.test(value)) return value
      throw wrong(key, value)
    },
    flag: (key, fallback) => {
      const value = config[key] ?? fallback
      if (typeof value === 'boolean') return value
      throw wrong(key, value)
    },
    integer: (key, fallback, least, most) => {
      const value = config[key] ?? fallback
      if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
      throw wrong(key, value)
    },
    secret: (slot, form, hint) => {
      const value = secret(slot)?.trim()
      if (value !== undefined && form.test(value)) return value
      if (value === undefined) throw unbound(instance, [slot], hint)
      throw new InstanceProblem({
        status: 'auth_required',
        reason: 'auth_failed',
        message: `the secret ${slot} has the wrong form: ${hint}`,
      })
    },
  }
}

/**
 * The problem of a missing secret, with the command to bind it.
 * @param slots The slot, or several alternatives
 */
export function unbound({ id }: Instance, slots: readonly string[], hint?: string): InstanceProblem {
  const why = `no secret is bound to ${slots.join(' or ')}${hint === undefined ? '' : `: ${hint}`}`
  const message = `${why}. Bind it: svc bridge secret-bindings put ${id} ${slots[0]}`
  return new InstanceProblem({ status: 'auth_required', reason: 'auth_failed', message })
}

function wrong(key: string, value: unknown): InstanceProblem {
  const text = clip(JSON.stringify(value) ?? 'absent', 80)
  const message = `provider_config.${key}: ${text} is not allowed here`
  return new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })
}
