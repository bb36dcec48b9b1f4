import type { Fault } from '../../../../kernel/plugin.js'
import { needsConsent } from '../consent/agreed.js'
import { type Brought, beyond, consentDigest } from '../consent/brought.js'
import { type Consentable, consentableOf } from '../consent/grants.js'
import { typeOf } from '../manifest/manifest.js'
import type { Provenance } from './provenance.js'
import { type Candidate, dropped } from './source/candidate.js'
import { addressOf, tierOf } from './source/source.js'
import { type Decision, decide } from './trust.js'

/** Preview of an installation or update, for the person who has to confirm it. */
export interface Preview {
  readonly name: string
  readonly description: string
  readonly type: 'subprocess' | 'plugin' | 'resource'
  /** `taken`: an extension of that name exists, and an installation does not replace it. */
  readonly action: 'install' | 'update' | 'none' | 'taken'
  readonly version: string
  readonly previousVersion?: string
  readonly tier: string
  readonly address: string
  readonly commit?: string
  readonly archiveDigest?: string
  readonly treeDigest: string
  readonly files: number
  readonly bytes: number
  /** Requested methods of the Host API; `added` and `removed` compare with the installed version. */
  readonly permissions: readonly string[]
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** Requested methods that its source tier excludes. */
  readonly dropped: readonly string[]
  /** Consents that only the operator gives: those requested, and those given. */
  readonly asked: readonly Consentable[]
  readonly consents: readonly Consentable[]
  readonly requiresEnv: readonly string[]
  /** Everything that it brings; a person consents to the digest of this list. */
  readonly brings: readonly Brought[]
  readonly consentDigest: string
  /** Whether a person has to consent. */
  readonly needsConsent: boolean
  /** Items that the installed version does not bring. */
  readonly newBrings: readonly Brought[]
  /** Whether its programs run in a sandbox. */
  readonly isConfined: boolean
  /** Command of its process, as in the manifest. */
  readonly command?: string
  readonly trust: { readonly decision: Decision } | { readonly decision: 'refused'; readonly fault: Fault }
}

/** Does not throw: objections of the trust policy are part of the preview. */
export function previewOf(
  candidate: Candidate & { readonly brings: readonly Brought[] },
  installed: Provenance | undefined,
  request: Parameters<typeof decide>[0] & {
    takenByHand: boolean
    unsandboxed: readonly string[]
    consents: readonly Consentable[]
  },
): Preview {
  const { manifest, source, tree, commit, archiveDigest, treeDigest, brings } = candidate
  const tier = tierOf(source)
  const permissions = manifest.permissions.requires
  const before = installed?.permissions ?? []
  return {
    name: manifest.name,
    description: manifest.description ?? '',
    type: typeOf(manifest),
    action: actionOf(candidate, installed, request.takenByHand),
    version: manifest.version,
    ...(installed ? { previousVersion: installed.version } : {}),
    tier,
    address: addressOf(source),
    ...(commit === undefined ? {} : { commit }),
    ...(archiveDigest === undefined ? {} : { archiveDigest }),
    treeDigest,
    files: tree.length,
    bytes: tree.reduce((sum, file) => sum + file.bytes.length, 0),
    permissions,
    added: permissions.filter(method => !before.includes(method)),
    removed: before.filter(method => !permissions.includes(method)),
    dropped: dropped(candidate, request.consents),
    asked: tier === 'marketplace' ? consentableOf(manifest) : [],
    consents: request.consents,
    requiresEnv: manifest.requires_env,
    brings,
    consentDigest: consentDigest(brings),
    needsConsent: needsConsent({ tier, brings }, installed),
    newBrings: beyond(brings, installed?.brings ?? []),
    isConfined: tier === 'marketplace' && !request.unsandboxed.includes(manifest.name),
    ...(manifest.subprocess ? { command: [manifest.subprocess.command, ...manifest.subprocess.args].join(' ') } : {}),
    trust: trustOf(request),
  }
}

function actionOf({ treeDigest }: Candidate, installed: Provenance | undefined, byHand: boolean): Preview['action'] {
  if (byHand) return 'taken'
  if (installed === undefined) return 'install'
  return installed.treeDigest === treeDigest && installed.brings !== undefined ? 'none' : 'update'
}

function trustOf(request: Parameters<typeof decide>[0]): Preview['trust'] {
  try {
    return { decision: decide(request) }
  } catch (fault) {
    return { decision: 'refused', fault: fault as Fault }
  }
}
