import type { Fault } from '../../../kernel/plugin.js'
import type { Consentable } from '../extensions/api.js'
import type { Provenance } from './provenance.js'
import type { SourceRequest } from './source/source.js'

/** What a request agrees to. */
interface Agreement {
  /** Digest published by the author: of an archive, a commit, or a folder's tree. */
  readonly checksum?: string | undefined
  /** Digest of the previewed tree: other files are refused. */
  readonly treeDigest?: string | undefined
  readonly allowUnverified?: boolean | undefined
  /** Digest of the previewed contents of the extension: the consent of a person. */
  readonly consentDigest?: string | undefined
  /** Consents beyond those of every extension from a catalog; consents to an earlier version remain. */
  readonly allow?: readonly Consentable[] | undefined
}

/** A request to install an extension or to preview the installation. */
export interface InstallRequest extends SourceRequest, Agreement {}

export interface UpdateRequest extends Agreement {
  /** An archive on this machine, for an extension installed from this machine; default: the original source. */
  readonly path?: string | undefined
  /** Another branch, tag or commit of a repository. */
  readonly version?: string | undefined
}

/** Result of an update; `available`: only a check was requested. */
export interface Updated {
  readonly status: 'updated' | 'up_to_date' | 'available'
  readonly previous: Provenance
  readonly current: Provenance
}

/** An item of a batch; a failed one is the last. */
export type BatchItem = { readonly name: string } & (Updated | { readonly status: 'failed'; readonly fault: Fault })
