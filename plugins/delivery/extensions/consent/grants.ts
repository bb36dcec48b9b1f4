import { type Manifest, publishFamilies, type SourceTier } from '../manifest/manifest.js'
import { type Consent, hostMethods } from '../manifest/permissions.js'

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
export function consentableOf({ permissions }: Pick<Manifest, 'permissions'>): Consentable[] {
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
  { manifest, tier }: { readonly manifest: Manifest; readonly tier: SourceTier },
  { allowedKinds, maxScope }: { readonly allowedKinds: readonly string[]; readonly maxScope: string },
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
