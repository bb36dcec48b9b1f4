import type { Actor, Party } from '../../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'
import { publishFamilies, type SourceTier } from '../manifest/manifest.js'
import { type Consent, hostMethods } from '../manifest/permissions.js'
import type { SubprocessLimits } from './settings.js'

/**
 * Consents of every marketplace extension: reading, and its own data. Extensions of other tiers get the consents that they
 * declare.
 */
export const MARKETPLACE_CONSENTS: readonly Consent[] = [
  'logs.read',
  'memory.read',
  'observe.read',
  'secret.read',
  'session.read',
  'skills.read',
  'state.read',
  'state.write',
  'tool.read',
]

/** Further consents for a marketplace extension, each granted by the operator by name. */
export const CONSENTABLE = ['bridge.read', 'bridge.write', 'session.write'] as const satisfies readonly Consent[]
export type Consentable = (typeof CONSENTABLE)[number]

/** Requested consents out of {@link CONSENTABLE}. */
export function consentableOf({ permissions }: Pick<InstalledExtension['manifest'], 'permissions'>): Consentable[] {
  const consents = new Set(permissions.requires.map(method => hostMethods.get(method)?.consent))
  return CONSENTABLE.filter(consent => consents.has(consent))
}

type Scope = 'global' | 'workspace'

/** Granted part of the rights that a manifest requests. */
export interface Grants {
  /** Methods of the Host API. */
  readonly permissions: readonly string[]
  readonly kinds: readonly string[]
  /** `global` implies `workspace`; empty when no kind is granted. */
  readonly scopes: readonly Scope[]
  /** Requested methods that its tier excludes. */
  readonly dropped: readonly string[]
}

const TIER_SCOPES: { readonly [T in SourceTier]: Scope } = {
  bundled: 'global',
  user: 'global',
  workspace: 'workspace',
  marketplace: 'global',
}

/**
 * Requested methods, limited by tier and consents; requested kinds that the operator allows, in the narrowest scope.
 */
export function grantsOf(
  { manifest, tier }: Pick<InstalledExtension, 'manifest' | 'tier'>,
  { allowedKinds, maxScope }: Pick<SubprocessLimits, 'allowedKinds' | 'maxScope'>,
  consents: readonly Consent[] = [],
): Grants {
  const declared = [...new Set(manifest.permissions.requires)]
  const allowed = (method: string) => {
    const consent = hostMethods.get(method)?.consent
    return (
      consent !== undefined &&
      (tier !== 'marketplace' || MARKETPLACE_CONSENTS.includes(consent) || consents.includes(consent))
    )
  }
  const { families = [], max_scope: wanted = 'global' } = manifest.resources.publish ?? {}
  const kinds = [...new Set(families.map(family => publishFamilies[family]))].filter(
    kind => allowedKinds.length === 0 || allowedKinds.includes(kind),
  )
  const narrow = [wanted, TIER_SCOPES[tier], maxScope].includes('workspace')
  return {
    permissions: declared.filter(allowed),
    kinds,
    scopes: kinds.length === 0 ? [] : narrow ? ['workspace'] : ['global', 'workspace'],
    dropped: declared.filter(method => !allowed(method)),
  }
}

/** Source of an extension's records. */
export const sourceOf = (key: string): Party => ({ kind: 'extension', id: key })

/** The actor for an extension's own records, through the process with this nonce. */
export function publisher(key: string, grants: Grants, nonce: string, workspace?: string): Actor {
  const source = sourceOf(key)
  return {
    kind: 'extension',
    id: key,
    owner: source,
    source,
    origin: 'extension',
    nonce,
    grantedKinds: grants.kinds,
    grantedScopes: grants.scopes,
    ...(workspace === undefined ? {} : { maxScope: { kind: 'workspace', id: workspace } }),
  }
}

/**
 * The actor for all other calls of an extension. The extension owns the records it creates, but their source is that of
 * requests, so that an operator can change them.
 */
export function caller(key: string): Actor {
  return {
    kind: 'daemon',
    id: `extension.${key}`,
    owner: sourceOf(key),
    source: { kind: 'daemon', id: 'system' },
    origin: 'extension',
  }
}
