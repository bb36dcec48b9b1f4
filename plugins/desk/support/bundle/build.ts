import { clip } from '../../../../kernel/kit/text.js'
import { iso, messageOf, turn } from '../../../../kernel/plugin.js'
import type { SupportArtifact, SupportManifest } from '../../../../schemas/daemon/support.js'
import { Limits, REDACTION_VERSION, SCHEMA_VERSION } from '../limits.js'
import type { Scrubber } from '../redact/scrubber.js'
import { archiveOf, type Entry } from './archive.js'
import { type Content, type Encoded, encode } from './content.js'
import { summaryOf } from './summary.js'

/** One file of a bundle. */
export interface Source {
  readonly path: string
  /** Most bytes of the file. */
  readonly max?: number
  /** Why the file is omitted. A source that throws is omitted with its error. */
  readonly omitted?: string
  readonly read: (signal: AbortSignal) => Promise<Content>
}

export interface BundleRequest {
  readonly operationId: string
  readonly at: number
  readonly sources: readonly Source[]
  readonly scrubber: Scrubber
  readonly signal: AbortSignal
  /** First lines of the summary: the daemon and how the bundle was made. */
  readonly about: string
}

export interface Bundle {
  readonly manifest: SupportManifest
  readonly archive: Buffer
}

/**
 * Reads all sources one after the other and packs their content. A failed source does not affect the others. Content that exceeds
 * the limit is truncated, or omitted if it cannot be.
 */
export async function buildBundle(request: BundleRequest): Promise<Bundle> {
  const { scrubber, signal } = request
  const artifacts: SupportArtifact[] = []
  const entries: Entry[] = []
  const parts = new Map<string, unknown>()
  // Reserves space for the manifest and the summary.
  let left = Limits.bundle - 2 * Limits.artifact
  for (const source of request.sources) {
    signal.throwIfAborted()
    const read = await readSource(source, scrubber, signal, left)
    artifacts.push(read.artifact)
    if (read.encoded) {
      left -= read.encoded.bytes.length + 1024
      entries.push({ path: source.path, bytes: read.encoded.bytes })
      parts.set(source.path, partOf(source.path, read.encoded.bytes))
    }
    await turn()
  }
  const summary = Buffer.from(scrubber.text(summaryOf({ parts, artifacts, about: request.about, at: request.at })))
  entries.unshift({ path: 'summary.md', bytes: summary })
  artifacts.unshift(included('summary.md', { bytes: summary, truncated: false }))
  const { manifest, bytes } = manifestOf(request, artifacts)
  signal.throwIfAborted()
  return { manifest, archive: await archiveOf([{ path: 'manifest.json', bytes }, ...entries], request.at) }
}

interface Read {
  readonly artifact: SupportArtifact
  readonly encoded?: Encoded
}

async function readSource(source: Source, scrubber: Scrubber, signal: AbortSignal, left: number): Promise<Read> {
  const { path, max = Limits.artifact, omitted } = source
  const without = (reason: string): Read => ({
    artifact: {
      path,
      bytes: 0,
      included: false,
      truncated: false,
      omitted_reason: clip(scrubber.text(reason), 500),
    },
  })
  if (omitted !== undefined) return without(omitted)
  try {
    const encoded = await encode(await source.read(signal), scrubber, Math.min(max, left))
    if (!encoded) return without('it cannot be reduced to artifact_max_bytes')
    return { artifact: included(path, encoded), encoded }
  } catch (error) {
    signal.throwIfAborted()
    return without(messageOf(error))
  }
}

const included = (path: string, { bytes, truncated }: Encoded): SupportArtifact => ({
  path,
  bytes: bytes.length,
  included: true,
  truncated,
  redaction_version: REDACTION_VERSION,
})

/** The manifest contains its own size, so the size is found by iteration. */
function manifestOf({ operationId, at }: BundleRequest, artifacts: readonly SupportArtifact[]) {
  let own = 0
  for (;;) {
    const manifestEntry = included('manifest.json', { bytes: Buffer.alloc(0), truncated: false })
    const manifest: SupportManifest = {
      schema_version: SCHEMA_VERSION,
      operation_id: operationId,
      created_at: iso(at),
      redaction_version: REDACTION_VERSION,
      artifact_max_bytes: Limits.artifact,
      bundle_max_bytes: Limits.bundle,
      event_summary_max_bytes: Limits.events,
      log_tail_max_bytes: Limits.logTail,
      artifacts: [{ ...manifestEntry, bytes: own }, ...artifacts],
    }
    const bytes = Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`)
    if (bytes.length === own) return { manifest, bytes }
    own = bytes.length
  }
}

/** JSON files as data, other files as text. */
function partOf(path: string, bytes: Buffer): unknown {
  return path.endsWith('.json') ? JSON.parse(bytes.toString()) : bytes.toString()
}
