import { cli, describe, show, throws, tool } from '../../../kernel/kit/annotations/index.js'
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
import { undo } from '../../desk/changes/api.js'
import { BundleErrors } from '../bundles/api.js'
import { ExtensionErrors, MANIFEST_ERRORS, NAMED_ERRORS } from '../extensions/api.js'
import { CURATED_ERRORS } from '../marketplace/api.js'
import { InstallErrors } from './errors.js'
import type { InstallerService } from './service.js'

/** Errors of reading a new version from its source. */
const SOURCE_ERRORS = [
  ...MANIFEST_ERRORS,
  ...CURATED_ERRORS,
  ExtensionErrors.extension_version_unsupported,
  ExtensionErrors.extension_tier_refused,
  ExtensionErrors.extension_secret_foreign,
  ExtensionErrors.extension_path_escape,
  BundleErrors.bundle_invalid,
  InstallErrors.extension_content_refused,
  InstallErrors.extension_archive_digest_mismatch,
  InstallErrors.extension_unverified_policy_blocked,
  InstallErrors.extension_checksum_unverified,
  InstallErrors.extension_git_unavailable,
  InstallErrors.extension_source_invalid,
  InstallErrors.extension_source_unreachable,
  InstallErrors.extension_catalog_mismatch,
] as const

/** Errors of an update of an installed extension. */
const UPDATE_ERRORS = [
  ...SOURCE_ERRORS,
  ExtensionErrors.extension_consent_required,
  InstallErrors.extension_not_installed,
  InstallErrors.extension_not_updatable,
  InstallErrors.extension_changed_name,
  InstallErrors.extension_installed,
  InstallErrors.extension_update_failed,
] as const

const route = routeOf<InstallerService>(describe('Extensions'))

/** Installing, updating and removing; all but the previews are privileged. */
export const installRoutes: readonly Route<InstallerService>[] = [
  route({
    method: 'POST',
    path: '/api/extensions',
    with: [
      undo({ by: 'delete', of: 'extension.name' }),
      tool('extensions_install', ['extensions']),
      throws(...SOURCE_ERRORS, ExtensionErrors.extension_consent_required, InstallErrors.extension_installed),
    ],
    summary: 'Install an extension from a folder, an archive or a repository',
    body: InstallExtensionBody,
    replies: { 201: ExtensionReply },
    privileged: true,
    handle: async (service, { body, actor }) => created({ extension: await service.install(body, actor) }),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/preview',
    audited: false,
    with: [throws(...SOURCE_ERRORS, InstallErrors.extension_not_installed, InstallErrors.extension_not_updatable)],
    summary: 'Show what installing or updating an extension would do',
    body: PreviewInstallBody,
    replies: { 200: InstallPreviewReply },
    privileged: true,
    handle: async (service, { body }) => ok({ preview: await service.preview(body) }),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/update',
    with: [
      undo({ by: 'never', why: 'the former files are not kept; install the former version: svc extension install' }),
    ],
    summary: 'Update all installed extensions; stop at the first failure',
    body: UpdateAllBody,
    replies: { 200: UpdateAllReply },
    privileged: true,
    handle: async (service, { body, actor }) => ok(await service.updateAll(body, actor)),
  }),
  route({
    method: 'PUT',
    path: '/api/extensions/{name}',
    with: [
      undo({ by: 'never', why: 'the former files are not kept; install the former version: svc extension install' }),
      tool('extensions_update', ['extensions']),
      throws(...UPDATE_ERRORS),
    ],
    summary: 'Update an extension from its source',
    body: UpdateExtensionBody,
    replies: { 200: UpdateExtensionReply },
    privileged: true,
    handle: async (service, { params, body, actor }) => ok({ update: await service.update(params.name, body, actor) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/extensions/{name}',
    with: [
      undo({
        by: 'never',
        why: 'the files of the extension are not kept; install it again, and its records take effect: svc extension install',
      }),
      tool('extensions_remove', ['extensions']),
      throws(
        ...NAMED_ERRORS,
        ExtensionErrors.extension_in_use,
        InstallErrors.extension_not_installed,
        BundleErrors.bundle_in_use,
      ),
    ],
    summary: 'Remove an extension; its records and tables are kept unless it is purged',
    recovery: true,
    query: RemoveExtensionQuery,
    essential: true,
    replies: { 200: RemoveExtensionReply },
    privileged: true,
    handle: async (service, { params, query, actor }) =>
      ok({ extension: await service.remove(params.name, query, actor) }),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/{name}/verify',
    audited: false,
    summary: 'Compare the files of an extension with those that were installed',
    replies: { 200: VerifyExtensionReply },
    privileged: true,
    with: [
      throws(InstallErrors.extension_not_installed),
      cli('extension verify', {
        view: show(VerifyExtensionReply, '', [
          'matches',
          { of: 'expected', header: 'Installed' },
          { of: 'actual', header: 'Now' },
        ]),
      }),
    ],
    handle: async (service, { params, actor }) => ok(await service.verify(params.name, actor)),
  }),
]

const trustOptions = [
  {
    name: 'checksum',
    type: 'text',
    summary: 'digest published by its author: SHA-256 of the archive, or the commit',
  },
  { name: 'allow-unverified', type: 'boolean', summary: 'install without a digest' },
  { name: 'ref', type: 'text', summary: 'branch, tag or commit of a repository' },
  {
    name: 'allow',
    type: 'list',
    summary: 'additional permission of an extension from a catalog: session.write, bridge.read or bridge.write',
  },
  { name: 'dry-run', type: 'boolean', summary: 'only show what it would do' },
] as const

const installOptions = [
  ...trustOptions,
  {
    name: 'from',
    type: 'text',
    summary: 'local_path, url, git, github or curated (the marketplace); default: derived from the source',
  },
  { name: 'yes', type: 'boolean', summary: 'skip the confirmation: consent to everything that it brings' },
  { name: 'asset', type: 'text', summary: 'name of the archive in a GitHub release' },
] as const

const updateOptions = [
  ...trustOptions,
  { name: 'archive', type: 'text', summary: 'a .tar.gz file with another version, used instead of its source' },
  { name: 'yes', type: 'boolean', summary: 'accept everything that it brings and asks for' },
] as const

const nameOfOne = { name: 'name', summary: 'name of an extension' }

/** Commands that send more than one request. */
export const installCommands: readonly Command[] = [
  {
    path: 'extension install',
    summary: 'Install an extension, after showing what it contains and which permissions it requests',
    args: [{ name: 'source', summary: 'a folder, a .tar.gz file, a URL, a repository, or owner/repository on GitHub' }],
    options: installOptions,
    load: () => import('./commands.js').then(module => ({ run: module.runInstall })),
  },
  {
    path: 'extension update',
    summary: 'Update an extension from its source; without a name, update all',
    args: [{ ...nameOfOne, optional: true }],
    options: updateOptions,
    load: () => import('./commands.js').then(module => ({ run: module.runUpdate })),
  },
  {
    path: 'extension remove',
    summary: 'Remove an extension, or unlink a development folder; --purge also removes its records and tables',
    args: [nameOfOne],
    options: [
      { name: 'purge', type: 'boolean', summary: 'also remove its records, tables and secrets' },
      { name: 'workspace', type: 'text', summary: 'workspace of a development link; * for the link to all workspaces' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runRemove })),
  },
]
