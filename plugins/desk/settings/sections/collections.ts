import type * as v from 'valibot'
import type { ThrownError } from '../../../../kernel/kit/annotations/index.js'
import { parseSecretRef } from '../../../../kernel/kit/secret-ref.js'
import { shown } from '../../../../kernel/kit/text.js'
import {
  type ProviderEntry,
  ProviderEntry as ProviderEntrySchema,
  type ProviderSettings,
  PutProviderBody,
  PutSandboxBody,
  SandboxEntry,
} from '../../../../schemas/settings/entries.js'
import { HookEntry, PutHookBody, type SourceMetadata } from '../../../../schemas/settings/hooks.js'
import { type ProvidersApi, SECRET_ERRORS } from '../../../agents/providers/api.js'
import type { HooksApi } from '../../../work/hooks/api.js'
import type { WorkspacesApi } from '../../workspaces/api.js'
import type { Facts } from '../section.js'

/** Inputs for describing the entries of a collection. */
export interface CollectionFacts extends Facts {
  readonly providers: ProvidersApi | undefined
  readonly workspaces: WorkspacesApi
  readonly hooks: HooksApi | undefined
}

/** Declaration of named entries below one key of the configuration; its routes are generated from it. */
export interface Collection {
  readonly name: 'providers' | 'sandboxes' | 'hooks'
  /** Name of one entry in replies. */
  readonly one: 'provider' | 'sandbox' | 'hook'
  /** The section that contains the collection, if any. */
  readonly section?: string
  /** Key of the configuration: a map merged by name. */
  readonly path: string
  readonly entry: v.GenericSchema
  readonly body: v.GenericSchema
  /** The member of a body that holds the entry. */
  readonly member: 'settings' | 'profile' | 'declaration'
  /** Errors of {@link keep}. */
  readonly throws?: readonly ThrownError[]
  /** Names of built-in entries, which are not in the file. */
  readonly builtIn?: (facts: CollectionFacts) => readonly string[]
  readonly describe: (name: string, written: unknown, facts: CollectionFacts) => Promise<unknown>
  /** Users of an entry; a used entry cannot be removed. */
  readonly users: (name: string, facts: CollectionFacts) => Promise<readonly string[]>
  /** Why a valid body is rejected. */
  readonly refusal?: (body: unknown, name: string) => string | undefined
  /** Runs before an entry is deleted. Resolves to a callback for after the deletion, successful or not. */
  readonly deleting?: (name: string, facts: CollectionFacts) => Promise<(() => Promise<void>) | undefined>
  /**
   * Stores the secrets of a body and resolves to a callback that restores the former ones; undefined if the body has no secrets.
   */
  readonly keep?: (name: string, body: unknown, facts: CollectionFacts) => Promise<(() => Promise<void>) | undefined>
}

const fromFile: SourceMetadata = {
  available_targets: ['global-config'],
  effective_source: { kind: 'global-config', scope: 'global' },
}
const builtInSource = { kind: 'builtin-provider', scope: 'global' } as const

async function describeProvider(name: string, written: unknown, facts: CollectionFacts): Promise<ProviderEntry> {
  const settings = written as ProviderSettings | undefined
  const known = await facts.providers?.shown(name)
  const own = facts.providers?.builtInEntry(name)
  const { last_probe_at: _, ...auth } = known?.auth_status ?? { last_probe_at: undefined }
  const shadowed = settings !== undefined && own !== undefined
  return {
    name,
    ...('state' in auth && { auth_status: auth }),
    command_available: known !== undefined && (known.command === undefined || known.executable !== undefined),
    credentials: await Promise.all(
      (settings?.credential_slots ?? []).map(async slot => ({
        ...slot,
        present: (await facts.providers?.isPresent(slot.secret_ref)) ?? false,
        source: parseSecretRef(slot.secret_ref)?.scheme ?? '',
      })),
    ),
    default: known?.default ?? false,
    ...(shadowed && { fallback: { settings: own, source: builtInSource } }),
    settings: { ...own, ...settings },
    source_metadata:
      settings === undefined
        ? { available_targets: ['global-config'], effective_source: builtInSource }
        : { ...fromFile, ...(shadowed && { shadowed_sources: [builtInSource] }) },
  }
}

export const providers: Collection = {
  name: 'providers',
  one: 'provider',
  path: 'providers',
  entry: ProviderEntrySchema,
  body: PutProviderBody,
  member: 'settings',
  throws: SECRET_ERRORS,
  builtIn: ({ providers }) => providers?.list().map(({ name }) => name) ?? [],
  describe: describeProvider,
  users: async (name, { providers }) => (await providers?.users(name)) ?? [],
  refusal: body => {
    const { model_curation: curation } = body as PutProviderBody
    return curation ? 'model_curation belongs to the model catalog; write settings.models.curated instead' : undefined
  },
  keep: async (name, body, { providers, actor }) => {
    const { secrets = [] } = body as PutProviderBody
    return secrets.length === 0 ? undefined : providers?.storeSecrets(name, secrets, actor)
  },
  deleting: async (name, { providers }) => providers?.deleting(name),
}

const sandboxes: Collection = {
  name: 'sandboxes',
  one: 'sandbox',
  path: 'sandboxes',
  entry: SandboxEntry,
  body: PutSandboxBody,
  member: 'profile',
  describe: async (name, profile, { workspaces }) => ({
    name,
    profile,
    source_metadata: fromFile,
    workspace_usage_count: workspaces.list().filter(({ sandboxRef }) => sandboxRef === name).length,
  }),
  users: async (name, { workspaces }) =>
    workspaces.list().flatMap(workspace => (workspace.sandboxRef === name ? [workspace.name] : [])),
}

export const hooks: Collection = {
  name: 'hooks',
  one: 'hook',
  section: 'hooks-extensions',
  path: 'hooks',
  entry: HookEntry,
  body: PutHookBody,
  member: 'declaration',
  describe: async (name, declaration) => ({
    name,
    declaration: { matcher: {}, ...(declaration as object), name },
    source_metadata: fromFile,
  }),
  users: async (name, { hooks }) => {
    const runs = hooks?.running(name) ?? 0
    return runs > 0 ? [`${runs} of its runs`] : []
  },
  refusal: (body, name) => {
    const { declaration } = body as PutHookBody
    return declaration.name === name
      ? undefined
      : `the declaration names the hook ${shown(declaration.name)}, not ${shown(name)}`
  },
}

/** All collections. To add a collection, add an entry. */
export const collections: readonly Collection[] = [providers, sandboxes, hooks]
