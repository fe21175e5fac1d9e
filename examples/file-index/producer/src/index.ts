export { type EnqueueRequest, enqueueListing } from "./enqueue-listing.ts";
export { type ListedFolder, type Listing, listFiles } from "./list-files.ts";
