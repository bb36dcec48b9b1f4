/** `svc/plugin` of an extension of `apiVersion = 1`: all names that it had then, wherever they are now. */
export * from '../../../kernel/plugin.js'
export { routeOf } from './routes.js'
