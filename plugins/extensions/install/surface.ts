import { type Command, created, ok, type Route, routeOf } from '../../../kernel/plugin.js'
import {
  InstallExtensionBody,
  InstallPreviewReply,
  PreviewInstallBody,
  RemoveExtensionQuery,
  UpdateAllBody,
  UpdateAllReply,
  UpdateExtensionBody,
  VerifyExtensionReply,
} from '../../../schemas/extensions/install.js'
import { ExtensionReply, RemoveExtensionReply, UpdateExtensionReply } from '../../../schemas/extensions.js'
import type { InstallDoor } from './door.js'

/** What the routes of installing need of the service of the plugin. */
export interface Installs {
  readonly install: InstallDoor
}

const route = routeOf<Installs>()
const area = 'Extensions'
const refusals = [400, 403, 422, 500, 503] as const

/** Installing, updating and removing; all but looking is privileged. */
export const installRoutes: readonly Route<Installs>[] = [
  route({
    method: 'POST',
    path: '/api/extensions',
    area,
    summary: 'Install an extension from a folder, an archive or a repository',
    body: InstallExtensionBody,
    replies: { 201: ExtensionReply },
    errors: [...refusals, 409],
    privileged: true,
    handle: async (self, { body, actor }) => created({ extension: await self.install.install(body, actor) }),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/preview',
    area,
    summary: 'What installing or updating an extension would do',
    body: PreviewInstallBody,
    replies: { 200: InstallPreviewReply },
    errors: [...refusals, 404],
    privileged: true,
    handle: async (self, { body }) => ok({ preview: await self.install.preview(body) }),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/update',
    area,
    summary: 'Update all that were installed, to the first that fails',
    body: UpdateAllBody,
    replies: { 200: UpdateAllReply },
    errors: refusals,
    privileged: true,
    handle: async (self, { body, actor }) => ok(await self.install.updateAll(body, actor)),
  }),
  route({
    method: 'PUT',
    path: '/api/extensions/{name}',
    area,
    summary: 'Update an extension from where it came',
    body: UpdateExtensionBody,
    replies: { 200: UpdateExtensionReply },
    errors: [...refusals, 404, 409],
    privileged: true,
    handle: async (self, { params, body, actor }) =>
      ok({ update: await self.install.update(params.name, body, actor) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/extensions/{name}',
    area,
    summary: 'Remove an extension; its records and tables stay unless it is purged',
    query: RemoveExtensionQuery,
    essential: true,
    replies: { 200: RemoveExtensionReply },
    errors: [403, 404, 409, 500, 503],
    privileged: true,
    handle: async (self, { params, query, actor }) =>
      ok({ extension: await self.install.remove(params.name, query, actor) }),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/{name}/verify',
    area,
    summary: 'Compare the files of an extension with those that were installed',
    replies: { 200: VerifyExtensionReply },
    errors: [403, 404, 500, 503],
    privileged: true,
    cli: {
      path: 'extension verify',
      view: {
        item: '',
        fields: [
          { header: 'Matches', path: 'matches' },
          { header: 'Installed', path: 'expected' },
          { header: 'Now', path: 'actual' },
        ],
      },
    },
    handle: async (self, { params, actor }) => ok(await self.install.verify(params.name, actor)),
  }),
]

const trustOptions = [
  {
    name: 'checksum',
    type: 'text',
    summary: 'digest that its author published: SHA-256 of the archive, or the commit',
  },
  { name: 'allow-unverified', type: 'boolean', summary: 'take it without a digest' },
  { name: 'ref', type: 'text', summary: 'branch, tag or commit of a repository' },
  { name: 'dry-run', type: 'boolean', summary: 'only show what it would do' },
] as const

const installOptions = [
  ...trustOptions,
  {
    name: 'from',
    type: 'text',
    summary: 'local_path, url, git, github or curated (the marketplace), where the source does not tell',
  },
  { name: 'yes', type: 'boolean', summary: 'ask nothing on a terminal' },
  { name: 'asset', type: 'text', summary: 'archive among the files of a release on GitHub' },
] as const

const updateOptions = [
  ...trustOptions,
  { name: 'yes', type: 'boolean', summary: 'also when it asks for more permissions than before' },
] as const

const nameOfOne = { name: 'name', summary: 'name of an extension' }

/** The commands that are more than one request. */
export const installCommands: readonly Command[] = [
  {
    path: 'extension install',
    summary: 'Install an extension, after showing what it is and what it asks for',
    args: [{ name: 'source', summary: 'a folder, a .tar.gz, an address, a repository or owner/repository on GitHub' }],
    options: installOptions,
    load: () => import('../commands.js').then(module => ({ run: module.runInstall })),
  },
  {
    path: 'extension update',
    summary: 'Update an extension from where it came, or without a name all of them',
    args: [{ ...nameOfOne, optional: true }],
    options: updateOptions,
    load: () => import('../commands.js').then(module => ({ run: module.runUpdate })),
  },
  {
    path: 'extension remove',
    summary: 'Remove an extension, records and tables only with --purge; or unlink the folder of a developer',
    args: [nameOfOne],
    options: [
      { name: 'purge', type: 'boolean', summary: 'its records, tables and secrets as well' },
      { name: 'workspace', type: 'text', summary: 'the link of a developer to this workspace; * for that to all' },
    ],
    load: () => import('../commands.js').then(module => ({ run: module.runRemove })),
  },
]
