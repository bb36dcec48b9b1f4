// Makes the catalog of this folder from sources/: archives, checksums, signatures, feeds.
//   node examples/marketplace/publish.mjs [target folder] [key.pem]
// Without a key one is made, and its private half is thrown away: a catalog of your own needs one that you keep.
import { createHash, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { create } from 'tar'

const here = dirname(fileURLToPath(import.meta.url))
const [target = here, keyFile] = process.argv.slice(2)
const privateKey = keyFile ? createPrivateKey(readFileSync(keyFile)) : generateKeyPairSync('ed25519').privateKey
const publicKey = Buffer.from(privateKey.export({ format: 'jwk' }).x, 'base64url').toString('base64')

/** Packs a folder; the same files give the same bytes. */
function pack(folder, name) {
  mkdirSync(dirname(join(target, name)), { recursive: true })
  const options = { sync: true, gzip: true, portable: true, mtime: new Date(0), cwd: folder, file: join(target, name) }
  create(options, readdirSync(folder).sort())
  return createHash('sha256')
    .update(readFileSync(join(target, name)))
    .digest('hex')
}

const write = (name, entries) =>
  writeFileSync(join(target, name), `${JSON.stringify({ version: 1, entries }, null, 2)}\n`)

const field = (text, name) => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1]

const skills = readdirSync(join(here, 'sources')).map(id => {
  const folder = join(here, 'sources', id)
  const text = readFileSync(join(folder, 'SKILL.md'), 'utf8')
  const version = field(text, 'version')
  const archive = `skills/${id}-${version}.tar.gz`
  const sha256 = pack(folder, archive)
  const signed = `svc-skill-v1\n${id}\n${version}\n${sha256}\n`
  return {
    id,
    name: field(text, 'name'),
    description: field(text, 'description'),
    license: field(text, 'license'),
    author: 'Example authors',
    tier: 'official',
    curated: true,
    tags: ['git'],
    public_key: publicKey,
    versions: [{ version, archive, sha256, signature: sign(null, Buffer.from(signed), privateKey).toString('base64') }],
  }
})
write('skills.json', skills)

const kit = join(here, '..', 'extensions', 'release-kit')
const manifest = readFileSync(join(kit, 'extension.toml'), 'utf8')
const kitVersion = /^version = "(.*)"$/m.exec(manifest)?.[1]
const artifact = `extensions/release-kit-${kitVersion}.tar.gz`
write('extensions.json', [
  {
    id: 'release-kit',
    name: /^name = "(.*)"$/m.exec(manifest)?.[1],
    description: /^description = "(.*)"$/m.exec(manifest)?.[1],
    version: kitVersion,
    author: 'Example authors',
    curated: true,
    artifact_url: artifact,
    digest_sha256: pack(kit, artifact),
  },
])

write('mcp.json', [
  {
    id: 'filesystem',
    name: 'filesystem',
    description: 'Read and write files below folders that you name',
    author: 'Model Context Protocol',
    curated: true,
    mcp: {
      transport: 'stdio',
      command: 'npx',
      args: ['-y', '@modelcontextprotocol/server-filesystem', '.'],
      default_scope: 'workspace',
    },
  },
  {
    id: 'everything',
    name: 'everything',
    description: 'Every feature of the protocol, for tests',
    author: 'Model Context Protocol',
    mcp: {
      transport: 'stdio',
      command: 'npx',
      args: ['-y', '@modelcontextprotocol/server-everything'],
      default_scope: 'global',
      env: [{ name: 'EVERYTHING_TOKEN', required: false, secret: true, prompt: 'A token for the tests' }],
    },
  },
])
