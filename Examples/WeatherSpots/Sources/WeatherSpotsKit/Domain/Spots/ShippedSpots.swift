/// The hundred places of the file `spots.csv`, which ship with the program for demonstrations.
public enum ShippedSpots {
  /// Places in the order of the file.
  public static var spots: [Spot] { SpotsCSV(PackageResources.spots_csv).spots }
}
