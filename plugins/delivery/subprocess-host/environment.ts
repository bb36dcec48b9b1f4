import path from 'node:path'
import { resolveSecret } from '../../../kernel/kit/secret-ref.js'
import { faultOf, messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import { vaultPath } from '../../access/vault/api.js'
import { ISOLATED, looksSecret, searchPath } from '../../agents/providers/api.js'
import { isWithheld } from '../../platform/processes/api.js'
import { askedFor, askerOf, ExtensionErrors, type Manifest, resolveInside, secretReference } from '../extensions/api.js'

/** Parameters of a process start. */
export interface Launch {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Values that must not be shown. */
  readonly secrets: readonly string[]
}

/**
 * Command and environment of a manifest's process. The command is a path in the extension or the bare name of a program
 * in the PATH; the environment has the common variables and those of the manifest.
 * @param bound references by name, which override `secret_env` and fill variables of `requires_env`
 * @throws Fault `extension_launch_invalid`, `extension_path_escape`
 */
export async function launchOf(
  host: Pick<PluginKernel, 'collect' | 'env'>,
  manifest: Manifest,
  root: string,
  bound: Readonly<Record<string, string>> = {},
  key = manifest.name,
): Promise<Launch> {
  const { env } = host
  const { subprocess } = manifest
  if (!subprocess) throw ExtensionErrors.extension_launch_invalid('the manifest has no [subprocess]')
  const secrets: string[] = []
  const named = (name: string, where: string): string => {
    const value = isWithheld(name) ? undefined : env[name]
    if (value === undefined) {
      throw ExtensionErrors.extension_launch_invalid(`${where} needs ${name}, which is not set for the daemon`, {
        next: `set ${name} in the environment of the daemon and start it again`,
      })
    }
    return value
  }
  const expand = (text: string, where: string) =>
    text.replace(/\{\{(?:(config_dir)|env:([A-Za-z_][A-Za-z0-9_]*))\}\}/g, (_, folder, name) => {
      if (folder !== undefined) return root
      const value = named(name, where)
      if (looksSecret(name)) secrets.push(value)
      return value
    })
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] => ISOLATED.test(entry[0]) && entry[1] !== undefined,
  )
  const plainEnv = Object.entries(subprocess.env).map(([name, text]) => [
    name,
    expand(text, `[subprocess.env] ${name}`),
  ])
  const secret: [name: string, value: string][] = []
  // Variables of `requires_env` are optional: the process starts without them, and `missing_env` lists them.
  for (const name of [...Object.keys(subprocess.secret_env), ...askedFor(manifest)]) {
    const value = await secretOf(host, manifest, name, bound, key)
    if (value === undefined) continue
    secrets.push(value)
    secret.push([name, value])
  }
  return {
    argv: [
      await programOf(expand(subprocess.command, '[subprocess] command'), root),
      ...subprocess.args.map(arg => expand(arg, '[subprocess] args')),
    ],
    env: {
      ...Object.fromEntries(kept),
      PATH: searchPath(env).join(path.delimiter),
      ...Object.fromEntries(plainEnv),
      ...Object.fromEntries(secret),
    },
    secrets,
  }
}

/**
 * The current value of a variable of `secret_env` or `requires_env`; undefined for an optional one without a value.
 * @throws Fault `extension_launch_invalid` for a variable that the manifest does not declare or that cannot be read
 */
export async function secretOf(
  host: Pick<PluginKernel, 'collect'>,
  manifest: Manifest,
  name: string,
  bound: Readonly<Record<string, string>> = {},
  key = manifest.name,
): Promise<string | undefined> {
  const { secret_env: declared = {} } = manifest.subprocess ?? {}
  // The asker limits the access to the extension's own secrets, whatever the manifest names.
  const asker = askerOf(host, manifest)
  const isDeclared = Object.hasOwn(declared, name)
  if (!isDeclared && !askedFor(manifest).includes(name))
    throw ExtensionErrors.extension_launch_invalid(
      `${manifest.name} does not declare ${name} in [subprocess.secret_env]`,
    )
  const own = Object.hasOwn(bound, name) ? bound[name] : undefined
  const reference = own ?? (isDeclared ? declared[name] : secretReference({ name: manifest.name, key }, name)) ?? ''
  if (!isDeclared && own === undefined && vaultPath(reference) === undefined) return undefined
  const what = isDeclared ? `[subprocess.secret_env] ${name}` : `requires_env ${name}`
  return resolveSecret(asker, reference, what).catch(error => {
    const { next, code } = faultOf(error)
    if (!isDeclared && LACKING.includes(code)) return undefined
    throw ExtensionErrors.extension_launch_invalid(messageOf(error), { next, cause: error })
  })
}

/** Faults of a secret without a value. */
const LACKING: readonly string[] = ['secret_missing', 'secret_resolver_missing']

/** A bare name is found in the PATH; all other commands are in the extension. */
async function programOf(command: string, root: string): Promise<string> {
  if (!command.includes('/')) return command
  if (path.isAbsolute(command)) {
    if (command !== root && !command.startsWith(root + path.sep)) {
      throw ExtensionErrors.extension_path_escape(`[subprocess] command ${command} leads out of ${root}`)
    }
    return resolveInside(root, path.relative(root, command))
  }
  return resolveInside(root, command)
}
