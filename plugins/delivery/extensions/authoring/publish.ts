import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { messageOf } from '../../../../kernel/plugin.js'
import { writeWhole } from '../../../desk/workspaces/api.js'
import { packFolder, signedExtension } from '../../installer/api.js'
import { ExtensionErrors } from '../errors.js'
import type { Manifest } from '../manifest/manifest.js'

const FEED = 'extensions.json'
const MAX_KEY_BYTES = 16 * 1024
const MAX_FEED_BYTES = 16 * 1024 * 1024

/** An entry of the feed; entries of other extensions are kept unchanged. */
interface FeedEntry {
  readonly id: string
  readonly [member: string]: unknown
}

export interface Publication {
  readonly name: string
  readonly version: string
  /** Absolute. */
  readonly archive: string
  readonly sha256: string
  readonly signed: boolean
}

/**
 * Packs an extension into the folder of a catalog and replaces the feed's entry of that name.
 * @param key PEM of an Ed25519 key; undefined: the entry is not signed
 * @throws Fault `extension_publish_invalid`, and those of packing
 */
export async function publishTo(
  catalog: string,
  root: string,
  manifest: Manifest,
  { key, author }: { readonly key?: string | undefined; readonly author?: string | undefined },
): Promise<Publication> {
  const { name, version, description = name } = manifest
  const signer = key === undefined ? undefined : await readKey(key)
  const feed = await readFeed(catalog)
  const before = feed.find(({ id }) => id === name)
  if (before?.public_key !== undefined && before.public_key !== (signer && publicKeyOf(signer)))
    refuse(`${name} is already in the catalog, signed with another key; installed copies could not be updated`)
  const artifact = `extensions/${name}-${version}.tar.gz`
  await mkdir(path.join(catalog, 'extensions'), { recursive: true })
  const { file, sha256 } = await packFolder(root, name, path.join(catalog, artifact))
  const entry: FeedEntry = {
    ...before,
    id: name,
    name,
    description,
    version,
    ...(author !== undefined && { author }),
    artifact_url: artifact,
    digest_sha256: sha256,
    ...(signer && {
      public_key: publicKeyOf(signer),
      signature: sign(null, Buffer.from(signedExtension(name, version, sha256)), signer).toString('base64'),
    }),
  }
  const entries = before ? feed.map(one => (one === before ? entry : one)) : [...feed, entry]
  const text = `${JSON.stringify({ version: 1, entries }, undefined, 2)}\n`
  await writeWhole(path.join(catalog, FEED), text, { how: 'replace', unique: sha256.slice(0, 12) })
  return { name, version, archive: file, sha256, signed: signer !== undefined }
}

async function readFeed(catalog: string): Promise<readonly FeedEntry[]> {
  const bytes = await readRegularFile(path.join(catalog, FEED), { maxBytes: MAX_FEED_BYTES })
  if (!bytes) return []
  try {
    const { entries } = JSON.parse(bytes.toString()) as { entries?: unknown }
    if (Array.isArray(entries)) return entries as FeedEntry[]
  } catch (error) {
    return refuse(`${FEED}: ${messageOf(error)}`)
  }
  return refuse(`${FEED} has no list entries`)
}

/** @throws Fault `extension_publish_invalid` for anything but an Ed25519 key in PEM */
async function readKey(file: string): Promise<KeyObject> {
  try {
    const pem = await readRegularFile(file, { maxBytes: MAX_KEY_BYTES })
    if (!pem) return refuse(`there is no key ${file}`)
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch (error) {
    return refuse(`the key: ${messageOf(error)}`)
  }
  return refuse('the key is not an Ed25519 key')
}

/** The 32 bytes of the public key in base64. */
const publicKeyOf = (key: KeyObject): string =>
  createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')

function refuse(text: string): never {
  throw ExtensionErrors.extension_publish_invalid(text)
}
