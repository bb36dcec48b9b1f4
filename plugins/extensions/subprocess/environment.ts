import path from 'node:path'
import { resolveSecret } from '../../../kernel/kit/secret-ref.js'
import { faultOf, messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import { ISOLATED, looksSecret, searchPath } from '../../providers/api.js'
import { ExtensionErrors } from '../errors.js'
import type { Manifest } from '../manifest/manifest.js'
import { resolveInside } from '../manifest/paths.js'

/** What a process is started with. */
export interface Launch {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Values that must not be shown. */
  readonly secrets: readonly string[]
}

/**
 * Command and environment of a manifest's process. The command is a path inside the extension, or the bare name of a program
 * on the PATH; the environment has what every program needs, and what the manifest names.
 * @param bound references in place of those of `secret_env`, by name
 * @throws Fault `extension_launch_invalid`, `extension_path_escape`
 */
export async function launchOf(
  host: Pick<PluginKernel, 'collect' | 'env' | 'name'>,
  manifest: Manifest,
  root: string,
  bound: Readonly<Record<string, string>> = {},
): Promise<Launch> {
  const { env } = host
  const { subprocess } = manifest
  if (!subprocess) throw ExtensionErrors.extension_launch_invalid('the manifest has no [subprocess]')
  const secrets: string[] = []
  const named = (name: string, where: string): string => {
    const value = env[name]
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
  const given = Object.entries(subprocess.env).map(([name, text]) => [name, expand(text, `[subprocess.env] ${name}`)])
  const secret: [name: string, value: string][] = []
  for (const [name, declared] of Object.entries(subprocess.secret_env)) {
    const what = `[subprocess.secret_env] ${name}`
    const value = await resolveSecret(host, bound[name] ?? declared, what).catch(error => {
      const { next } = faultOf(error)
      throw ExtensionErrors.extension_launch_invalid(messageOf(error), { next, cause: error })
    })
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
      ...Object.fromEntries(given),
      ...Object.fromEntries(secret),
    },
    secrets,
  }
}

/** A bare name is left to the PATH; anything else lies in the extension. */
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
