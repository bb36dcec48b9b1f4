import type { Fault } from '../../../../kernel/plugin.js'
import type { Consentable } from '../subprocess/grants.js'
import type { Provenance } from './provenance.js'
import type { SourceRequest } from './source/source.js'

/** A request to install, or to look at what would be installed. */
export interface InstallRequest extends SourceRequest {
  /** Digest that its author published: of an archive, of a commit, of a folder's tree. */
  readonly checksum?: string | undefined
  /** Digest of the tree that a preview showed: anything else is not what was looked at. */
  readonly treeDigest?: string | undefined
  readonly allowUnverified?: boolean | undefined
  /** Digest of what it brings, as a preview showed it: the consent of a person. */
  readonly consentDigest?: string | undefined
  /** What it may do besides what every extension from a catalog may; what an earlier version was allowed stays so. */
  readonly allow?: readonly Consentable[] | undefined
}

export interface UpdateRequest {
  /** An archive on this machine, of an extension that was installed from this machine; default: where the installed one came from. */
  readonly path?: string | undefined
  /** Another branch, tag or commit than before, of a repository. */
  readonly version?: string | undefined
  readonly checksum?: string | undefined
  readonly treeDigest?: string | undefined
  readonly allowUnverified?: boolean | undefined
  /** Digest of what it brings, as a preview showed it: the consent of a person. */
  readonly consentDigest?: string | undefined
  /** What it may do besides what every extension from a catalog may; what an earlier version was allowed stays so. */
  readonly allow?: readonly Consentable[] | undefined
}

/** What became of one update; `available`: it was only looked. */
export interface Updated {
  readonly status: 'updated' | 'up_to_date' | 'available'
  readonly previous: Provenance
  readonly current: Provenance
}

/** One of a batch; behind a failed one there are none. */
export type BatchItem = { readonly name: string } & (Updated | { readonly status: 'failed'; readonly fault: Fault })
