/** `svc/plugin` for an extension of `apiVersion = 1`: all its former names, from their current modules. */
// Names that no current entry exports.
export { isOneOf } from '../../../../kernel/http/guards.js'
export { typeOf } from '../../../../kernel/http/reply.js'
export {
  allowance,
  backoff,
  type CliArgument,
  type CliColumn,
  type CliScoped,
  type CliShorthand,
  type CliTable,
  type CliView,
  canonicalJson,
  FileErrors,
  issueText,
  type OpenFileOptions,
  openRegularFile,
  openRegularFileSync,
  type Rate,
  type ReadFileOptions,
  type RouteCli,
  readBounded,
  readRegularFile,
  readRegularFileSync,
  TokenBucket,
  unreadable,
} from '../../../../kernel/kit/index.js'
export * from '../../../../kernel/platform.js'
export * from '../../../../kernel/plugin.js'
export { routeOf } from './routes.js'
